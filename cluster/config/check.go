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

// cleanupPolicy wants a list of delete and compact without repetition, and no compact while nothing compacts.
func cleanupPolicy(v Value) string {
	for i, w := range v.Words {
		switch {
		case w != "delete" && w != "compact":
			return "it must be delete, or an empty list to keep everything"
		case slices.Contains(v.Words[:i], w):
			return "it names " + w + " twice"
		case w == "compact":
			return "compact is refused because this build does not compact logs yet: use delete"
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
