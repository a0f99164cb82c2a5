package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cmd/troupe/settings"
)

// checkedSetting is one line of `troupe config check`.
type checkedSetting struct {
	Name          string `json:"name"`
	Value         string `json:"value"`
	Where         string `json:"where"`
	WithoutEffect string `json:"without_effect,omitempty"` // why
}

func newConfigCheck(s *session) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a broker's configuration without starting it",
		Long: "Read file, environment and flags as `troupe serve` does, report what is wrong, and print what was set and where. Of an\n" +
			"extension actor's settings the name of the actor is checked; the rest the actor does when it starts.",
		Example: "  troupe config check --config troupe.yaml",
		RunE: func(*cobra.Command, []string) error {
			loaded, values, err := o.load(s)
			if err != nil {
				return err
			}
			if p := values.Peer; p.Listen != "" && p.Certificate != "" {
				if _, err := broker.LoadPeerTLS(p.Certificate, p.Key, p.CA); err != nil {
					return startFailure(err)
				}
			}
			if err := actors.CheckChoice(loaded.Actors, loaded.ActorSettings); err != nil {
				return actorFailure(err, loaded)
			}
			without := map[string]string{}
			for _, w := range loaded.Warnings {
				without[w.Name] = w.Reason
			}
			rows := []checkedSetting{}
			for _, e := range loaded.Static {
				r := checkedSetting{Name: e.Name, Value: e.Value, Where: loaded.Where(e.Name), WithoutEffect: without[e.Name]}
				if key, ok := config.Broker().Lookup(e.Name); !ok || key.Hidden {
					r.Value = "(not shown)" // a secret, or a key with a prefix, which may be one
				}
				rows = append(rows, r)
			}
			rows = append(rows, actorRows(loaded)...)
			return s.show(rows, func(w io.Writer) {
				row(w, "KEY", "VALUE", "FROM", "")
				for _, r := range rows {
					note := ""
					if r.WithoutEffect != "" {
						note = "without effect: " + r.WithoutEffect
					}
					row(w, r.Name, r.Value, r.Where, note)
				}
			})
		},
	}
	o.register(cmd)
	return cmd
}

// actorRows are the settings of extension actors.
func actorRows(loaded *settings.Loaded) []checkedSetting {
	var rows []checkedSetting
	if len(loaded.Actors) > 0 {
		rows = append(rows, checkedSetting{Name: "actors.enabled", Value: strings.Join(loaded.Actors, ","), Where: loaded.Where("actors.enabled")})
	}
	for _, key := range slices.Sorted(maps.Keys(loaded.ActorSettings)) {
		// Whether it is a secret, the actor alone knows.
		rows = append(rows, checkedSetting{Name: "actors." + key, Value: "(not shown)", Where: loaded.Where("actors." + key)})
	}
	return rows
}

// explainedKey is what `troupe config explain` says of a key.
type explainedKey struct {
	Name     string   `json:"name"`
	Of       string   `json:"of"` // topic, broker, group, client-metrics
	Type     string   `json:"type"`
	Default  *string  `json:"default"`
	Unit     string   `json:"unit,omitempty"`
	Class    string   `json:"class"`
	Reason   string   `json:"reason,omitempty"`
	Update   string   `json:"update,omitempty"` // broker keys
	Env      string   `json:"env,omitempty"`    // broker keys
	Synonyms []string `json:"synonyms,omitempty"`
	Doc      string   `json:"doc"`
}

func newConfigExplain(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "explain KEY",
		Short:   "Say what a key means, offline",
		Example: "  troupe config explain min.insync.replicas",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, table := range tables {
				for k := range table().All() {
					names = append(names, k.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var found []explainedKey
			var all []*config.Table
			for _, table := range tables {
				all = append(all, table())
				if key, ok := table().Lookup(args[0]); ok {
					found = append(found, explain(key, table()))
				}
			}
			if strings.HasPrefix(args[0], "actors.") {
				return fail(codeNotFound, "docs/extending.md: actors.enabled names those that run, each has settings of its own", "%s belongs to extension actors, not to the tables of keys", args[0])
			}
			if len(found) == 0 {
				return &config.Error{Code: config.UnknownKey, Key: args[0], Nearest: config.Nearest(args[0], all...)}
			}
			return s.show(found, func(w io.Writer) {
				for i, k := range found {
					if i > 0 {
						row(w)
					}
					k.text(w)
				}
			})
		},
	}
}

var tables = []func() *config.Table{config.Topic, config.Broker, config.Group, config.ClientMetrics}

func explain(key *config.Key, table *config.Table) explainedKey {
	k := explainedKey{
		Name: key.Name, Of: table.Resource.String(), Type: key.Type.String(), Unit: string(key.Unit),
		Class: key.Class.String(), Reason: key.Reason, Doc: key.Doc,
	}
	if !key.Null {
		k.Default = &key.Default
	}
	for _, syn := range key.Synonyms {
		k.Synonyms = append(k.Synonyms, syn.Name)
	}
	if table.Resource == config.BrokerResource {
		k.Update, k.Env = key.Update.String(), config.EnvName(key.Name)
	}
	return k
}

func (k *explainedKey) text(w io.Writer) {
	row(w, k.Name, "of a "+k.Of)
	row(w, "", k.Doc)
	def := "unset"
	switch {
	case k.Default == nil:
	case *k.Default == "":
		def = "empty"
	case k.Unit != "":
		def = *k.Default + " " + k.Unit
	default:
		def = *k.Default
	}
	row(w, "type", k.Type)
	row(w, "default", def)
	class := k.Class
	if k.Reason != "" {
		class += ": " + k.Reason
	}
	row(w, "class", class)
	if k.Update != "" {
		row(w, "update", k.Update)
		row(w, "variable", k.Env)
	}
	if len(k.Synonyms) > 0 {
		row(w, "default from", strings.Join(k.Synonyms, ", "))
	}
}
