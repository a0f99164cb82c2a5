// Package config holds the tables of every configuration key Troupe knows: Kafka's for topics, brokers, groups, client metrics and quotas, and its own.
//
// Each Key has a class, and the class is a promise:
//
//   - Honoured: the broker does what the key says. Whoever wires the broker wires each of these; the table is the list.
//   - Accepted: known and checked, without effect. A file copied from a Kafka server starts; the broker warns once at its start and DescribeConfigs
//     marks the key. Only keys whose absence changes no promise a client or an operator relies on may be in this class.
//   - Refused: setting it to anything but its neutral value is an error that says why. Keys whose neglect would break a promise (security,
//     tiering) are here until the feature exists.
//
// A key has a type, a default, a check with a sentence for the user, a unit, and says whether it may change while the broker runs (Update). A topic key
// names the broker keys that supply its default, first wins (Key.Synonyms).
//
// # Where a value comes from
//
// A topic's effective value is the first that exists of: the topic's own override, the broker's dynamic value, the cluster-wide dynamic value, the
// broker's file, environment or flags, the default. DescribeConfigs shows the chain. Stack holds the layers; Stack.ForTopic, ForBroker,
// ForGroup and ForClientMetrics resolve one key; TopicOf and BrokerOf resolve all honoured keys into plain numbers.
//
// The package is pure: it parses text it is handed and returns errors with TRP codes; it opens no file and reads no environment.
package config

//go:generate go test . -run TestConfigsPageIsTheGeneratedOne -rewrite
