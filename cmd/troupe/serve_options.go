package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cmd/troupe/settings"
)

// serveOptions is what the flags of `troupe serve` say. Each is an alias of a key; those that were not given say nothing.
type serveOptions struct {
	file  string
	pairs []string // -X
	cmd   *cobra.Command
}

// aliases are the flags that stand for a key.
var aliases = []struct{ flag, key, value, help string }{
	{"listen", "listeners", "HOST:PORT", "address for clients"},
	{"advertise", "advertised.listeners", "HOST:PORT", "address that clients are told to connect to"},
	{"data-dir", "log.dirs", "DIR", "data directory"},
	{"broker-id", "node.id", "N", "number of this broker in its cluster"},
	{"rack", "broker.rack", "NAME", "rack that this broker is in"},
	{"peer-listen", "peer.listen", "HOST:PORT", "address for other brokers, TCP and UDP"},
	{"peer-advertise", "peer.advertise", "HOST:PORT", "address that other brokers are told to connect to"},
	{"join", "join", "HOST:PORT", "peer addresses of brokers of the cluster, separated by commas"},
	{"bootstrap-expect", "bootstrap.expect", "N", "number of brokers that found the cluster: 1, 3 or 5"},
	{"insecure", "peer.insecure", "", "open the peer port to others than this machine without keys"},
}

// register adds the flags to a command.
func (o *serveOptions) register(cmd *cobra.Command) {
	o.cmd = cmd
	flags := cmd.Flags()
	for _, a := range aliases {
		key, ok := config.Broker().Lookup(a.key)
		if !ok {
			panic("serve: the flag --" + a.flag + " stands for " + a.key + ", which is no key")
		}
		what := "key " + a.key + ", default " + shownDefault(key)
		if key.Type == config.Bool {
			flags.Bool(a.flag, false, fmt.Sprintf("%s (%s)", a.help, what))
			continue
		}
		flags.String(a.flag, "", fmt.Sprintf("%s, `%s` (%s)", a.help, a.value, what))
	}
	flags.StringVarP(&o.file, "config", "c", "", "YAML `FILE` of settings (env TROUPE_CONFIG)")
	flags.StringArrayVarP(&o.pairs, "set", "X", nil, "setting, `KEY=VALUE`; may be given again")
	must(cmd.MarkFlagFilename("config", "yaml", "yml"))
	must(cmd.MarkFlagDirname("data-dir"))
	must(cmd.RegisterFlagCompletionFunc("set", completeKeys(config.Broker(), "=", anyKey)))
}

func anyKey(*config.Key) bool { return true }

func shownDefault(key *config.Key) string {
	if key.Name == "log.dirs" { // the plural wins where both are set, and the singular has the default
		key, _ = config.Broker().Lookup("log.dir")
	}
	switch {
	case key.Name == "bootstrap.expect":
		return "1; none with --join"
	case key.Null || key.Default == "":
		return "none"
	}
	return key.Default
}

// completeKeys offers the names of a table's keys that have an effect and that keep, each with the suffix behind it.
func completeKeys(table *config.Table, suffix string, keep func(*config.Key) bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for k := range table.All() {
			if k.Class == config.Honoured && !k.Internal && keep(k) && strings.HasPrefix(k.Name+suffix, typed) {
				names = append(names, k.Name+suffix)
			}
		}
		if suffix == "" {
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}

// load reads all layers, and resolves what they mean for this broker.
func (o *serveOptions) load(s *session) (*settings.Loaded, config.BrokerValues, error) {
	from := settings.Sources{File: o.file, Environ: s.environ()}
	if from.File == "" {
		from.File, _ = s.env("TROUPE_CONFIG")
	}
	for _, a := range aliases {
		if o.cmd.Flags().Changed(a.flag) {
			from.Flags = append(from.Flags, config.Given{Name: a.key, Value: o.cmd.Flags().Lookup(a.flag).Value.String(), Where: "flag --" + a.flag})
		}
	}
	for _, pair := range o.pairs {
		given, err := config.FromFlag(pair)
		if err != nil {
			return nil, config.BrokerValues{}, err
		}
		from.Flags = append(from.Flags, given)
	}
	loaded, err := settings.Load(from)
	if err != nil {
		return nil, config.BrokerValues{}, configFailure(err)
	}
	values, err := config.BrokerOf(config.Stack{Static: loaded.Static})
	if bad, ok := errors.AsType[*config.Error](err); ok {
		bad.Where = loaded.Where(bad.Key)
		f := asFailure(bad)
		if bad.Key == "listeners" {
			f.Hint = advertiseHint(loaded.Static)
		}
		return nil, config.BrokerValues{}, f
	}
	return loaded, values, err
}

// configFailure turns what is wrong with a configuration into what a person reads: the first problem with its source, and
// the others below it.
func configFailure(err error) error {
	if file, ok := errors.AsType[*settings.FileError](err); ok {
		f := fail(codeConfigFile, "", "%w", err)
		f.Exit = exitUsage
		f.Details = lines(file.Excerpt)
		return f
	}
	var problems settings.ProblemsError
	if !errors.As(err, &problems) {
		return err
	}
	f := asFailure(problems[0].Error)
	f.Details = lines(problems[0].Excerpt)
	for _, p := range problems[1:] {
		f.Details = append(append(f.Details, p.Error.Error()), lines(p.Excerpt)...)
	}
	return f
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
