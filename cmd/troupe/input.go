package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lineBytesMax bounds one line of input: the greatest request that a broker takes by default.
const lineBytesMax = 100 << 20

// lineFormat says how a line becomes a record.
type lineFormat struct {
	json      bool
	separator string // between key and value; empty: the line is the value
	null      string // a key or value equal to it is null; empty: nothing is
	key       []byte // of every record, when the lines have none
	headers   []kgo.RecordHeader
	partition int32 // of every record, or noPartition
}

// parse makes a record of one line, which it does not keep.
func (f *lineFormat) parse(line []byte) (*kgo.Record, error) {
	if f.json {
		r, err := fromJSON(line)
		if err != nil {
			return nil, err
		}
		if r.Partition == noPartition {
			r.Partition = f.partition
		}
		if r.Key == nil {
			r.Key = f.key
		}
		r.Headers = append(r.Headers, f.headers...)
		return r, nil
	}
	r := &kgo.Record{Key: f.key, Partition: f.partition, Headers: f.headers}
	if f.separator != "" {
		key, value, ok := bytes.Cut(line, []byte(f.separator))
		if !ok {
			return nil, fmt.Errorf("there is no %q between key and value", f.separator)
		}
		r.Key, line = f.nullable(key), value
	}
	r.Value = f.nullable(line)
	return r, nil
}

func (f *lineFormat) nullable(b []byte) []byte {
	if f.null != "" && string(b) == f.null {
		return nil
	}
	if len(b) == 0 {
		return []byte{}
	}
	return slices.Clone(b)
}

// input is a run of records, or the end: io.EOF or what is wrong with a line.
type input struct {
	records []*kgo.Record
	err     error
}

// readRecords reads lines on a goroutine of its own, because a read from a terminal cannot be interrupted: when ctx ends
// while one hangs, the goroutine ends with the process. The last input on the channel has err set, then it is closed.
func readRecords(ctx context.Context, in io.Reader, f *lineFormat) <-chan input {
	const runMax = 512
	runs := make(chan input, 4)
	go func() {
		defer close(runs)
		send := func(i input) bool {
			select {
			case runs <- i:
				return true
			case <-ctx.Done():
				return false
			}
		}
		reader := bufio.NewReaderSize(in, 1<<16)
		var run []*kgo.Record
		for number := 1; ; number++ {
			line, err := readLine(reader)
			if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
				if len(run) == 0 || send(input{records: run}) {
					send(input{err: err})
				}
				return
			}
			record, err := f.parse(line)
			if err != nil {
				if len(run) == 0 || send(input{records: run}) {
					send(input{err: fail(codeInput, "the records before it were sent", "line %d: %w", number, err)})
				}
				return
			}
			run = append(run, record)
			if len(run) == runMax || reader.Buffered() == 0 {
				if !send(input{records: run}) {
					return
				}
				run = nil
			}
		}
	}()
	return runs
}

// readLine returns the next line without its end. The last line may lack one; it comes with io.EOF. The slice is valid
// until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(long)+len(part) > lineBytesMax {
				return nil, fail(codeInput, "", "a line is longer than %d bytes", lineBytesMax)
			}
			long = append(long, part...)
			continue
		case long != nil:
			return append(long, part...), err
		}
		return part, err
	}
}
