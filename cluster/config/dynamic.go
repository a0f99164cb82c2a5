package config

import (
	"errors"
	"slices"
	"strings"
)

// For returns the table of a resource's keys. It panics for a resource type without one; callers check the type first.
func For(r Resource) *Table {
	switch r.Type {
	case TopicResource:
		return topicTable
	case BrokerResource:
		return brokerTable
	case GroupResource:
		return groupTable
	case ClientMetricsResource:
		return clientMetricsTable
	case BrokerLoggerResource: // has no table
	}
	panic("config: no table for a " + r.Type.String())
}

// Dynamic finds a key that may be altered on a resource while brokers run. The error is an *Error: UnknownKey or NotDynamic.
func (t *Table) Dynamic(name string, r Resource) (*Key, error) {
	k, ok := t.Lookup(name)
	if !ok {
		return nil, &Error{Code: UnknownKey, Key: name, Nearest: t.Nearest(name)}
	}
	if t != brokerTable {
		return k, nil
	}
	problem := ""
	switch {
	case k.Update == ReadOnly:
		problem = "is read at the start of a broker: set it in the configuration file and restart"
	case k.Update == PerBroker && r.Name == "":
		problem = "belongs to one broker: name the broker instead of the default of all"
	case k.Update == ClusterOnly && r.Name != "":
		problem = "is decided for the whole cluster: set it as the default of all brokers"
	}
	if problem != "" {
		return nil, &Error{Code: NotDynamic, Key: name, Problem: problem}
	}
	return k, nil
}

// IsNotDynamic tells whether an error says that a key cannot be altered on a resource.
func IsNotDynamic(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == NotDynamic
}

// Normalise checks a value of a key of this table and returns its canonical text.
func (t *Table) Normalise(name, text string) (string, error) {
	k, ok := t.Lookup(name)
	if !ok {
		return "", &Error{Code: UnknownKey, Key: name, Nearest: t.Nearest(name)}
	}
	v, err := k.Parse(text)
	if err != nil {
		return "", err
	}
	return v.Text, nil
}

// Combine appends words to a list, or subtracts them. Words already there are not appended again; words not there are not missed.
func (k *Key) Combine(list, words string, appending bool) string {
	have, _ := parse(List, list)
	change, _ := parse(List, words)
	out := have.Words
	for _, w := range change.Words {
		if appending && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if !appending {
		out = slices.DeleteFunc(out, func(w string) bool { return slices.Contains(change.Words, w) })
	}
	return strings.Join(out, ",")
}
