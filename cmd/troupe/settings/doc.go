// Package settings reads a broker's configuration file and joins it with the environment and the flags.
//
// The layers, the strongest last: a YAML file, TROUPE_… environment variables, flags. Every layer uses Kafka's names:
// log.retention.ms in the file (flat, or nested as log: retention: ms:), TROUPE_LOG_RETENTION_MS in the environment,
// -X log.retention.ms=… or a flag that is an alias on the command line. What a key means, which values it takes and how the
// layers are merged is for the tables of cluster/config; this package knows files, and keeps the source of each line of
// them, so that whatever is wrong can be shown in its place.
//
// # Glossary
//
//   - Given: one key with its text and the place where it was given (of cluster/config).
//   - Problem: one thing wrong, with the source around it when it is in a file.
//   - Loaded: what won, checked; the static configuration of a broker.
package settings
