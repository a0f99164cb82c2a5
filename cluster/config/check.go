package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// codecs are the values of compression.type.
var codecs = []string{"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}

// atLeast wants a number of at least low.
func atLeast(low int64) Check {
	return func(v Value) string {
		if v.Int < low {
			return "it must be at least " + strconv.FormatInt(low, 10)
		}
		return ""
	}
}

// between wants a number from low to high.
func between(low, high int64) Check {
	return func(v Value) string {
		if v.Int < low || v.Int > high {
			return fmt.Sprintf("it must be from %d to %d", low, high)
		}
		return ""
	}
}

// gzipLevel wants -1 or 1 to 9.
func gzipLevel(v Value) string {
	if v.Int != -1 && (v.Int < 1 || v.Int > 9) {
		return "it must be -1 or from 1 to 9"
	}
	return ""
}

// ratio wants a number from 0 to 1.
func ratio(v Value) string {
	if v.Float < 0 || v.Float > 1 {
		return "it must be from 0 to 1"
	}
	return ""
}

// oneOf wants one of some words, in exactly that spelling.
func oneOf(words ...string) Check {
	return func(v Value) string {
		if !slices.Contains(words, v.Text) {
			return "it must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

// aboveZero wants a number above 0.
func aboveZero(v Value) string {
	if v.Float <= 0 {
		return "it must be above 0"
	}
	return ""
}

// cleanupPolicy wants a list of delete and compact without repetition.
func cleanupPolicy(v Value) string {
	for i, w := range v.Words {
		switch {
		case w != "delete" && w != "compact":
			return "it must be a list of delete and compact, or an empty list to keep everything"
		case slices.Contains(v.Words[:i], w):
			return "it names " + w + " twice"
		}
	}
	return ""
}

// throttled wants *, or partition:broker pairs.
func throttled(v Value) string {
	if len(v.Words) == 1 && v.Words[0] == "*" {
		return ""
	}
	for _, w := range v.Words {
		partition, broker, ok := strings.Cut(w, ":")
		if !ok || !number(partition) || !number(broker) {
			return "it must be * or a list of partition:broker, such as 0:1,1:2"
		}
	}
	return ""
}

func number(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0
}

// notEmpty wants some text.
func notEmpty(v Value) string {
	if v.Text == "" {
		return "it must not be empty"
	}
	return ""
}

// oneDirectory wants exactly one word: more than one data directory does not exist yet.
func oneDirectory(v Value) string {
	if len(v.Words) != 1 {
		return "it must be one directory; several data directories do not exist yet"
	}
	return ""
}

// retention wants -1 or a positive number, as Kafka does.
func retention(v Value) string {
	if v.Int != -1 && v.Int < 1 {
		return "it must be -1 for no limit, or at least 1"
	}
	return ""
}

// roles wants what Kafka allows, the broker among it.
func roles(v Value) string {
	for i, w := range v.Words {
		if w != "broker" && w != "controller" || slices.Contains(v.Words[:i], w) {
			return "it must be broker,controller or broker"
		}
	}
	if !slices.Contains(v.Words, "broker") {
		return "a process that is only a controller does not exist; it must be broker,controller or broker"
	}
	return ""
}

// oneVoter wants at most one member of a quorum: starting each member of a bigger one as a cluster of its own would split what belongs together.
func oneVoter(v Value) string {
	if len(v.Words) > 1 {
		return "it names a quorum of several controllers of Kafka: brokers found theirs by bootstrap.expect and join; name at most one here"
	}
	return ""
}

// assignors wants names of assignors that there are.
func assignors(v Value) string {
	for i, w := range v.Words {
		if w != "uniform" && w != "range" || slices.Contains(v.Words[:i], w) {
			return "it must be a list of uniform and range; assignors of your own cannot be loaded"
		}
	}
	if len(v.Words) == 0 {
		return "it must name at least one assignor"
	}
	return ""
}

// rebalanceProtocols wants what Kafka allows, classic among it.
func rebalanceProtocols(v Value) string {
	for _, w := range v.Words {
		if w != "classic" && w != "consumer" && w != "streams" && w != "share" {
			return "it must be a list of classic, consumer, streams and share"
		}
	}
	if !slices.Contains(v.Words, "classic") {
		return "it must name classic, which cannot be switched off"
	}
	return ""
}

// offsetReset wants a word of share.auto.offset.reset.
func offsetReset(v Value) string {
	if v.Text != "earliest" && v.Text != "latest" && !strings.HasPrefix(v.Text, "by_duration:P") {
		return "it must be earliest, latest or by_duration: followed by an ISO 8601 duration such as PT1H"
	}
	return ""
}

// listenerList wants NAME://host:port words.
func listenerList(v Value) string {
	_, problem := parseListeners(v.Words)
	return problem
}

// protocolMap wants NAME:PROTOCOL words.
func protocolMap(v Value) string {
	_, problem := parseProtocols(v.Words)
	return problem
}

// hostPort wants host:port, or nothing.
func hostPort(v Value) string {
	if v.Text == "" {
		return ""
	}
	_, _, problem := splitHostPort(v.Text)
	return problem
}
