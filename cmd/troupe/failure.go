package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Exit codes. They are part of the contract with scripts (README.md, docs/errors.md).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBug         = 3   // a broken invariant stopped the broker
	exitUnsafe      = 11  // `troupe roll`: not now
	exitInterrupted = 130 // the second signal, as a shell reports SIGINT
)

// Codes of the command line. Those of the configuration tables are in cluster/config.
const (
	codeConfigFile   = "TRP-1008"
	codeListen       = "TRP-1009"
	codeStart        = "TRP-1010"
	codeStop         = "TRP-1011"
	codeFailed       = "TRP-1100"
	codeUsage        = "TRP-1101"
	codeUnreachable  = "TRP-1102"
	codeRefused      = "TRP-1103"
	codeTimeout      = "TRP-1104"
	codeInput        = "TRP-1105"
	codeNotFound     = "TRP-1106"
	codeUnconfirmed  = "TRP-1107"
	codeLocalFile    = "TRP-1108"
	codeInterrupted  = "TRP-1109"
	codeNotConfirmed = "TRP-1110"
	codeDamage       = "TRP-1111"
	codeNotDumped    = "TRP-1112"
	codeUnsafe       = "TRP-1113"
	codeUnsound      = "TRP-1114"

	codeDamagedRecords = "TRP-2103" // the broker's log has the same
)

// failure is an error as a person reads it: what happened, with its code, and what to do. Exit is the process's exit
// code.
type failure struct {
	Code string `json:"code"`
	What string `json:"message"`
	Hint string `json:"hint,omitempty"`
	Exit int    `json:"exit"`

	// Details are lines below the first: the source of a configuration, more problems of the same kind.
	Details []string `json:"details,omitempty"`

	cause error
}

// Error is the one line without the hint.
func (f *failure) Error() string { return f.Code + ": " + f.What }

// Unwrap gives the cause, which What already tells.
func (f *failure) Unwrap() error { return f.cause }

// fail makes a failure with exit code 1; format may wrap a cause with %w.
func fail(code, hint, format string, args ...any) *failure {
	err := fmt.Errorf(format, args...)
	return &failure{Code: code, What: err.Error(), Hint: hint, Exit: exitFailed, cause: errors.Unwrap(err)}
}

// usage makes a failure with exit code 2: the command line is wrong.
func usage(hint, format string, args ...any) *failure {
	f := fail(codeUsage, hint, format, args...)
	f.Exit = exitUsage
	return f
}

// asFailure turns any error into a failure; one that already is stays.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if bad, ok := errors.AsType[*config.Error](err); ok {
		return &failure{Code: bad.Code.String(), What: strings.Replace(bad.Error(), bad.Code.String()+": ", "", 1), Exit: exitUsage, cause: err}
	}
	var refused *kerr.Error
	switch {
	case errors.Is(err, context.Canceled):
		return fail(codeInterrupted, "", "interrupted")
	case errors.As(err, &refused):
		return fail(codeRefused, hintFor(refused), "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(codeTimeout, "the broker answers late or not at all; --timeout waits longer", "no answer in time: %w", err)
	case unreachable(err):
		return fail(codeUnreachable, hintUnreachable, "%w", err)
	}
	return fail(codeFailed, "", "%w", err)
}

const hintUnreachable = "start a broker with `troupe serve`, or name another with --bootstrap HOST:PORT or TROUPE_BOOTSTRAP"

func unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF)
}

// hintFor says what to do about an answer of the broker, where there is something that nearly always is right.
func hintFor(refused *kerr.Error) string {
	switch refused {
	case kerr.UnknownTopicOrPartition:
		return "`troupe topic list` shows the topics; `troupe topic create NAME` makes one"
	case kerr.TopicAlreadyExists:
		return "`troupe topic describe NAME` shows it; --if-not-exists makes this no error"
	case kerr.InvalidReplicationFactor:
		return "the replication factor cannot be greater than the number of brokers; leave it out for the broker's default"
	case kerr.MessageTooLarge:
		return "raise max.message.bytes of the topic, or send smaller batches with --batch-bytes"
	case kerr.OffsetOutOfRange:
		return "`troupe topic describe NAME` shows the first and the last offset"
	case kerr.KafkaStorageError:
		return "the broker's log says which directory is offline and why"
	case kerr.NonEmptyGroup:
		return "stop its consumers first; `troupe group describe GROUP --members` shows where they run"
	case kerr.GroupSubscribedToTopic:
		return "a member subscribes to the topic: stop the consumers of the group, or leave its offsets"
	case kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		return "the broker is reading its groups from disk; try again in a moment"
	case kerr.UnsupportedVersion:
		return "the broker does not serve this; `troupe version` and the broker's log show both builds"
	}
	return ""
}

// report writes a failure to w, in the form that -o asks for.
func (f *failure) report(w io.Writer, format string) {
	if format == formatJSON || format == formatYAML {
		// The error of a failed write has nowhere to go: w is stderr.
		b, err := json.Marshal(map[string]*failure{"error": f})
		if err == nil {
			_, _ = fmt.Fprintf(w, "%s\n", b)
			return
		}
	}
	var line strings.Builder
	line.WriteString("troupe: " + f.Error())
	for _, detail := range f.Details {
		line.WriteString("\n  " + detail)
	}
	if f.Hint != "" {
		line.WriteString("\n  hint: " + f.Hint)
	}
	_, _ = fmt.Fprintln(w, line.String())
}

// flagsError is what cobra calls for a flag it cannot read.
func flagsError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if i := strings.Index(text, ": strconv."); i >= 0 {
		text = text[:i] + ": it is not a number of that kind"
	}
	return usage("`"+cmd.CommandPath()+" --help` shows the flags", "%s", text)
}
