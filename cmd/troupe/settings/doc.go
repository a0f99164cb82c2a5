// Package settings reads a broker's configuration from its layers and checks it against the tables of cluster/config.
//
// The layers, the strongest last: a YAML file, TROUPE_… environment variables, flags. Every layer uses Kafka's names:
// log.retention.ms in the file (flat, or nested as log: retention: ms:), TROUPE_LOG_RETENTION_MS in the environment,
// -X log.retention.ms=… or a flag that is an alias on the command line. Within one layer a name is given once.
//
// A broker does not start on a configuration that it does not understand: an unknown key, a value of another type, a key
// that stands for something this build does not do are all reported, with the place (file, line and column with the
// source; the variable; the flag), and with the nearest known name. Keys that are accepted without effect are listed
// for a warning.
//
// # Glossary
//
//   - Setting: one key with its text and the place where it was given.
//   - Layer: the settings of one source.
//   - Loaded: what won, checked; the static configuration of a broker.
package settings
