package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// kcat is the command line client on librdkafka, in Debian's packages. It has no driver: each operation is one run.
// It reads with librdkafka's simple consumer, the road of programs that know nothing of groups.
type kcat struct {
	path      string
	bootstrap string
}

// Delimiters that no record of the suite holds. They are given as they are: kcat's escapes for bytes run on into
// letters that are hexadecimal digits.
const (
	kcatKeyEnd    = "\x1eKEY\x1e"
	kcatRecordEnd = "\x1eEND\x1e"
)

func (k *kcat) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"-b", k.bootstrap}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		failed := &clientError{Message: fmt.Sprintf("kcat %s: %v: %s", strings.Join(args, " "), err, errs.String())}
		for words, code := range kcatCodes {
			if strings.Contains(errs.String(), words) {
				failed.Code = &code
			}
		}
		return nil, failed
	}
	return out.Bytes(), nil
}

// kcatCodes are the words of librdkafka for the broker's errors that the suite asks for.
var kcatCodes = map[string]int16{
	"Broker: Offset out of range":              1,
	"Broker: Unknown topic or partition":       3,
	"Broker: Message size too large":           10,
	"Broker: Invalid topic":                    17,
	"Broker: Invalid timestamp":                32,
	"Broker: Unknown member":                   25,
	"Broker: Broker failed to validate record": 87,
}

func (k *kcat) hello(ctx context.Context) (hello, error) {
	out, err := exec.CommandContext(ctx, k.path, "-V").Output()
	if err != nil {
		return hello{}, fmt.Errorf("kcat -V: %w", err)
	}
	h := hello{
		Client: "kcat", Codecs: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Idempotent: true,
		Groups: []string{"classic/range", "classic/cooperative-sticky"},
		// Headers come as arguments, which end at a zero byte, and go as text; it stamps the time of sending and skips
		// messages of which nothing is left.
		Lacks: []string{lacksNulHeader, lacksTimestamp, lacksNothing, lacksReadHeaderBytes},
	}
	for word := range strings.FieldsSeq(string(out)) {
		if strings.Count(word, ".") >= 2 && word[0] >= '0' && word[0] <= '9' {
			if h.Version != "" {
				h.Version += "/librdkafka-"
			}
			h.Version += word
		}
	}
	return h, nil
}

// errNoAdmin: kcat has no requests about topics beyond Metadata. The suite creates its topic by another client.
var errNoAdmin = errors.New("kcat cannot create or delete topics")

func (k *kcat) create(context.Context, string, int, map[string]string) error { return errNoAdmin }
func (k *kcat) remove(context.Context, string) error                         { return errNoAdmin }
func (k *kcat) close(context.Context) error                                  { return nil }

func (k *kcat) administer(context.Context, string, int, string, string, int64) (described, error) {
	return described{}, errNoAdmin
}

// produce runs kcat once for each stretch of records with equal headers and equal nulls, since both are arguments.
func (k *kcat) produce(ctx context.Context, topic string, partition int, c cell, records []record) ([]int64, error) {
	offsets := make([]int64, len(records))
	inFlight := "1" // without sequences, a batch sent again would arrive after its successors
	if c.Idempotent {
		inFlight = "5"
	}
	for start := 0; start < len(records); {
		end := start + 1
		for end < len(records) && kcatFlags(records[end]) == kcatFlags(records[start]) {
			end++
		}
		args := []string{
			"-P", "-t", topic, "-p", strconv.Itoa(partition), "-D", kcatRecordEnd,
			"-X", "acks=" + strconv.Itoa(c.Acks), "-X", "compression.codec=" + c.Codec, "-X", "linger.ms=5",
			"-X", "enable.idempotence=" + strconv.FormatBool(c.Idempotent), "-X", "message.max.bytes=16777216",
			"-X", "max.in.flight=" + inFlight, "-X", "message.timeout.ms=30000", "-X", "retries=3",
		}
		first := records[start]
		if first.Key != nil {
			args = append(args, "-K", kcatKeyEnd)
		}
		if first.Value == nil {
			args = append(args, "-Z")
		}
		for _, h := range first.Headers {
			if h.Value == nil {
				args = append(args, "-H", h.Name)
			} else {
				args = append(args, "-H", h.Name+"="+string(h.Value))
			}
		}
		var stdin bytes.Buffer
		for _, r := range records[start:end] {
			if r.Key != nil {
				stdin.Write(r.Key)
				stdin.WriteString(kcatKeyEnd)
			}
			stdin.Write(r.Value)
			stdin.WriteString(kcatRecordEnd)
		}
		if _, err := k.run(ctx, stdin.Bytes(), args...); err != nil {
			return nil, fmt.Errorf("records %d to %d: %w", start, end-1, err)
		}
		start = end
	}
	for i := range offsets {
		offsets[i] = -1 // it does not tell
	}
	return offsets, nil
}

// kcatFlags are the arguments that a record needs; records with the same can go in one run.
func kcatFlags(r record) string {
	return fmt.Sprint(r.Key == nil, r.Value == nil, len(r.Key) == 0, len(r.Value) == 0, showHeaders(r.Headers))
}

func (k *kcat) read(ctx context.Context, topic string, partition int, from int64, count int) ([]record, error) {
	out, err := k.run(ctx, nil,
		"-C", "-q", "-t", topic, "-p", strconv.Itoa(partition), "-o", strconv.FormatInt(from, 10), "-c", strconv.Itoa(count),
		"-X", "fetch.wait.max.ms=500", "-X", "topic.auto.offset.reset=error", "-f", `%o %T %K %S\n%k%s%h`+kcatRecordEnd)
	if err != nil {
		return nil, err
	}
	return parseKcat(out)
}

// parseKcat takes apart what the format of read prints: numbers and lengths on a line, then key, value, headers.
func parseKcat(out []byte) ([]record, error) {
	var records []record
	for len(out) > 0 {
		line, rest, ok := bytes.Cut(out, []byte("\n"))
		var r record
		var key, value int
		if _, err := fmt.Sscanf(string(line), "%d %d %d %d", &r.Offset, &r.Timestamp, &key, &value); err != nil {
			return nil, fmt.Errorf("kcat printed %.80q where a record starts: %w", line, err)
		}
		if !ok {
			return nil, fmt.Errorf("kcat's output ends after %.80q", line)
		}
		take := func(n int) ([]byte, error) {
			if n < 0 {
				return nil, nil
			}
			if n > len(rest) {
				return nil, fmt.Errorf("kcat announced %d bytes and printed %d", n, len(rest))
			}
			b := rest[:n:n]
			rest = rest[n:]
			return b, nil
		}
		var err error
		if r.Key, err = take(key); err != nil {
			return nil, err
		}
		if r.Value, err = take(value); err != nil {
			return nil, err
		}
		headers, after, ok := bytes.Cut(rest, []byte(kcatRecordEnd))
		if !ok {
			return nil, errors.New("kcat's output ends within a record")
		}
		r.HeaderText = string(headers)
		records, out = append(records, r), after
	}
	return records, nil
}

// kcatHeaders is how kcat prints headers: values up to a zero byte, null as the word.
func kcatHeaders(headers []header) string {
	parts := make([]string, len(headers))
	for i, h := range headers {
		value, _, _ := bytes.Cut(h.Value, []byte{0})
		parts[i] = h.Name + "=" + string(value)
		if h.Value == nil {
			parts[i] = h.Name + "=NULL"
		}
	}
	return strings.Join(parts, ",")
}
