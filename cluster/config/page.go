package config

import (
	"fmt"
	"strings"
)

// Page is the text of docs/configs.md.
func Page() string {
	p := &page{}
	p.line("# Configuration keys")
	p.line("")
	p.line("<!-- Generated from the tables in cluster/config by `go generate ./cluster/config`. Change the tables, not this page. -->")
	p.line("")
	p.line("Troupe uses Kafka's names, and Kafka's defaults unless the description says otherwise. Each key is in one of three classes:")
	p.line("")
	p.line("* **honoured**: the broker does what the key says;")
	p.line("* **accepted without effect**: the value is checked and nothing else happens; a broker that is given one warns at its start;")
	p.line("* **refused**: any value but the default is an error that says why.")
	p.line("")
	p.line("Keys are given in the configuration file, as environment variables (`%s` for `log.retention.ms`) or as `-X key=value`; the later of these is stronger.", EnvName("log.retention.ms"))
	p.line("An unknown key stops the start. *Update* says whether a key can change while the broker runs: *cluster-wide* keys as the default of all brokers or")
	p.line("for one, *cluster-only* keys only as the default of all, *per-broker* keys only for one, *read-only* keys at the next start.")
	p.table("Topics", "Set when a topic is created or by altering its configs. A topic without a value takes the broker's; the broker key that supplies it is named in brackets.", topicTable)
	p.table("Brokers", "", brokerTable)
	p.table("Groups", "Configs of group resources.", groupTable)
	p.table("Client metrics", "Configs of client-metrics resources.", clientMetricsTable)
	p.table("Quotas", "Keys of client quotas.", quotaTable)
	return p.b.String()
}

type page struct{ b strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.b, format+"\n", args...)
}

// table writes one section with a part for each class that has keys. Internal keys are left out.
func (p *page) table(title, intro string, t *Table) {
	p.line("")
	p.line("## %s", title)
	if intro != "" {
		p.line("")
		p.line("%s", intro)
	}
	for _, class := range []Class{Honoured, Accepted, Refused} {
		var keys []*Key
		for k := range t.All() {
			if k.Class == class && !k.Internal {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 {
			continue
		}
		p.line("")
		p.line("### %s, %s", title, class)
		p.line("")
		if class == Honoured {
			p.line("| Key | Type | Default | Update | What it does |")
			p.line("|---|---|---|---|---|")
			for _, k := range keys {
				p.line("| `%s` | %s | %s | %s | %s |", k.Name, k.kind(), k.standard(), k.updated(), cell(k.Doc)+k.supplier())
			}
			continue
		}
		p.line("| Key | Type | Default | What it is for | Why |")
		p.line("|---|---|---|---|---|")
		for _, k := range keys {
			p.line("| `%s` | %s | %s | %s | %s |", k.Name, k.kind(), k.standard(), cell(k.Doc)+k.supplier(), cell(k.Reason))
		}
	}
}

func (k *Key) kind() string {
	if k.Unit == NoUnit {
		return k.Type.String()
	}
	return k.Type.String() + ", " + string(k.Unit)
}

func (k *Key) standard() string {
	switch {
	case k.Null:
		return "unset"
	case k.Default == "":
		return "empty"
	case k.Default == maxLong || k.Default == maxInt || strings.HasSuffix(k.Default, "E308"):
		return "no limit"
	}
	return "`" + k.Default + "`"
}

func (k *Key) updated() string {
	if k.table == topicTable {
		return "per topic"
	}
	return k.Update.String()
}

func (k *Key) supplier() string {
	if k.table == brokerTable || len(k.Synonyms) == 0 {
		return ""
	}
	names := make([]string, len(k.Synonyms))
	for i, s := range k.Synonyms {
		names[i] = "`" + s.Name + "`"
	}
	return " [" + strings.Join(names, ", ") + "]"
}

// cell makes text safe inside a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
