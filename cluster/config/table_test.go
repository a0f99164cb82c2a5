package config

import (
	"strings"
	"testing"
)

var allTables = []*Table{topicTable, brokerTable, groupTable, clientMetricsTable, quotaTable}

func TestEveryKeyHasAClassATypeADocAndADefaultThatPassesItsCheck(t *testing.T) {
	for _, table := range allTables {
		last := ""
		for k := range table.All() {
			if k.Name <= last {
				t.Errorf("%s stands after %s: a name is there twice", k.Name, last)
			}
			last = k.Name
			if k.Class.String() == "unclassified" {
				t.Errorf("%s has no class", k.Name)
			}
			if k.Type.String() == "unknown" {
				t.Errorf("%s has no type", k.Name)
			}
			if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
				t.Errorf("%s has no sentence of documentation", k.Name)
			}
			if (k.Class == Honoured) != (k.Reason == "") {
				t.Errorf("%s is %s and its reason is %q: every class but honoured needs one", k.Name, k.Class, k.Reason)
			}
			if k.Type == Password && !k.Hidden {
				t.Errorf("%s is a password and not hidden", k.Name)
			}
			if k.Null {
				continue
			}
			v, err := k.Parse(k.Default)
			if err != nil {
				t.Errorf("default of %s: %v", k.Name, err)
			} else if v.Text != k.Default {
				t.Errorf("default of %s is written %q, canonical is %q", k.Name, k.Default, v.Text)
			}
		}
	}
}

func TestEverySynonymIsABrokerKeyOfTheSameClassAndASuitableType(t *testing.T) {
	for _, table := range allTables {
		for k := range table.All() {
			for _, syn := range k.Synonyms {
				b, ok := brokerTable.Lookup(syn.Name)
				if !ok {
					t.Errorf("%s: its synonym %s is no broker key", k.Name, syn.Name)
					continue
				}
				if table != groupTable && b.Class != k.Class {
					t.Errorf("%s is %s, its synonym %s is %s", k.Name, k.Class, b.Name, b.Class)
				}
				if b.Type != k.Type && (b.Type != Int || k.Type != Long) {
					t.Errorf("%s is a %s, its synonym %s a %s", k.Name, k.Type, b.Name, b.Type)
				}
				if table == topicTable && len(k.Synonyms) == 1 && b.Default != k.Default && !b.Null {
					t.Errorf("%s defaults to %s, its synonym %s to %s", k.Name, k.Default, b.Name, b.Default)
				}
			}
		}
	}
}

// Numbers of keys in Kafka 4.4, ours on top. A key lost by an edit shows here.
func TestTablesHaveTheKeysOfKafka(t *testing.T) {
	for _, want := range []struct {
		table *Table
		name  string
		keys  int
	}{
		{topicTable, "topic", 40}, {groupTable, "group", 27}, {clientMetricsTable, "client metrics", 3}, {quotaTable, "quota", 5}, {brokerTable, "broker", 386 + 17},
	} {
		if got := want.table.Len(); got != want.keys {
			t.Errorf("%d %s keys, want %d", got, want.name, want.keys)
		}
	}
}
