package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// record is one record as a client wrote or read it. Nil keys, values and header values are Kafka's null.
type record struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp int64    `json:"timestamp"` // ms since 1970; unset where the writer cannot choose it
	Offset    int64    `json:"offset"`
	// TimestampType is CreateTime or LogAppendTime where the reader tells.
	TimestampType string `json:"timestampType,omitempty"`
	// HeaderText is what a reader that prints headers instead of giving them printed.
	HeaderText string `json:"-"`
}

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// cell is one way to write.
type cell struct {
	Codec      string `json:"codec"`
	Acks       int    `json:"acks"` // -1 is all
	Idempotent bool   `json:"idempotent"`
	// BatchRecords asks for batches of about so many records, where the client would make one of all; 0 is the client's
	// own choice.
	BatchRecords int `json:"batchRecords,omitempty"`
	// Patient asks for as many attempts as it takes to find another leader; without it a client gives up soon, so that a refusal costs no minute.
	Patient bool `json:"patient,omitempty"`
}

func (c cell) String() string {
	acks := map[int]string{0: "0", 1: "1", -1: "all"}[c.Acks]
	if c.Idempotent {
		return c.Codec + " idempotent"
	}
	return c.Codec + " acks=" + acks
}

// hello is how a client introduces itself.
type hello struct {
	Client     string   `json:"client"`
	Version    string   `json:"version"`
	Codecs     []string `json:"codecs"`
	Idempotent bool     `json:"idempotent"`
	Lacks      []string `json:"lacks"`
	// Groups are the ways in which it can be a member of a group, protocol/assignor.
	Groups []string `json:"groups"`
}

// The words of hello.Lacks.
const (
	lacksHeaderOrder     = "header-order"      // headers are an unordered map, written and read
	lacksNullHeader      = "write-null-header" // cannot write a header whose value is null
	lacksNulHeader       = "write-nul-header"  // cannot write a zero byte in a header
	lacksNothing         = "write-nothing"     // cannot write a record with neither key nor value
	lacksTimestamp       = "write-timestamp"   // the client stamps the time of sending
	lacksReadNullHeader  = "read-null-header"  // reads null header values as empty ones
	lacksReadNullKey     = "read-null-key"     // reads null keys as empty ones
	lacksReadNullValue   = "read-null-value"   // reads null values as empty ones
	lacksOutOfRange      = "read-out-of-range" // goes elsewhere when its offset is not in the log, and says nothing
	lacksInvalidRecord   = "code-87"           // does not know the error code INVALID_RECORD
	lacksAppendTime      = "read-append-time"  // shows the producer's timestamps where the broker has stamped its own
	lacksDeleteRecords   = "delete-records"    // has no DeleteRecords request
	lacksGroupSeek       = "group-seek"        // a member cannot move its position
	lacksGroupFencing    = "group-fencing"     // a member commits what it read in a generation that is over as of the one it is in
	lacksReadFailover    = "read-failover"     // reads by what lies below its consumers, which follows no leader
	lacksReadHeaderBytes = "read-header-bytes" // prints headers: HeaderText instead of Headers
)

func (h hello) lacks(what string) bool { return slices.Contains(h.Lacks, what) }

// client is one library or program that speaks to the broker. Each call opens and closes its own connections.
type client interface {
	hello(ctx context.Context) (hello, error)
	create(ctx context.Context, topic string, partitions int, config map[string]string) error
	remove(ctx context.Context, topic string) error
	// produce writes the records in order and gives their offsets: -1 where none was acknowledged.
	produce(ctx context.Context, topic string, partition int, c cell, records []record) ([]int64, error)
	// read gives at least count records from the offset on, reading the partition by itself, without a group.
	read(ctx context.Context, topic string, partition int, from int64, count int) ([]record, error)
	// administer lets the topic have so many partitions, sets one config, deletes the records of partition 0 below an
	// offset (a client that lacksDeleteRecords does not), and then asks for what it has set.
	administer(ctx context.Context, topic string, partitions int, key, value string, below int64) (described, error)
	close(ctx context.Context) error
}

// clientError is an error that a client reported.
type clientError struct {
	Code    *int16 `json:"code"` // the protocol's error code, where the client tells it
	Message string `json:"message"`
}

func (e *clientError) Error() string {
	if e.Code != nil {
		return fmt.Sprintf("%s (error code %d)", e.Message, *e.Code)
	}
	return e.Message
}

// request and answer are the lines of the conversation; the package comment shows them.
type request struct {
	ID        int               `json:"id"`
	Op        string            `json:"op"`
	Bootstrap string            `json:"bootstrap,omitempty"`
	Topic     string            `json:"topic,omitempty"`
	Partition int               `json:"partition"`
	Count     int               `json:"count,omitempty"`
	Config    map[string]string `json:"config,omitempty"`
	cell
	Records []record `json:"records,omitempty"`
	From    int64    `json:"from"`
	WaitMs  int64    `json:"waitMs,omitempty"`
	Main    string   `json:"main,omitempty"`
	Args    []string `json:"args,omitempty"`
	Stdin   string   `json:"stdin,omitempty"`
	*membership
	Metadata string `json:"metadata,omitempty"`
	Abandon  bool   `json:"abandon,omitempty"`
}

type answer struct {
	ID      int          `json:"id"`
	Error   *clientError `json:"error"`
	Hello   *hello       `json:"hello"`
	Offsets []int64      `json:"offsets"`
	Records []record     `json:"records"`
	Tool    *toolResult  `json:"tool"`
	Admin   *described   `json:"admin"`

	Committed *committedOffset `json:"committed"`
}

// described is a topic as a client's administrative requests show it: number of partitions, the value of a config, the
// first offset and the end of partition 0.
type described struct {
	Partitions int    `json:"partitions"`
	Value      string `json:"value"`
	Earliest   int64  `json:"earliest"`
	Latest     int64  `json:"latest"`
}

// toolResult is what a command line tool left.
type toolResult struct {
	Exit int    `json:"exit"`
	Out  string `json:"out"`
	Err  string `json:"err"`
}

// driver is a client behind the conversation. When a call's time runs out, its process is killed and the next call
// starts another: one hanging library costs one check.
type driver struct {
	command   peer.Command
	bootstrap string

	mu      sync.Mutex // one request at a time
	process *peer.Process
	stdin   io.WriteCloser
	lines   chan []byte // closed when the process has closed its standard output
	lastID  int
}

// answerBytesMax bounds one line of a driver: a cell of the corpus in base64, many times over.
const answerBytesMax = 64 << 20

func newDriver(command peer.Command, bootstrap string) *driver {
	return &driver{command: command, bootstrap: bootstrap}
}

func (d *driver) start() error {
	requests, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, requests.Close(), stdin.Close())
	}
	command := d.command
	command.Stdin, command.Stdout = requests, answers
	d.process, err = peer.Start(command)
	// The child has its own copies.
	err = errors.Join(err, requests.Close(), answers.Close())
	if err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	d.stdin, d.lines = stdin, make(chan []byte)
	go func(lines chan<- []byte) {
		defer close(lines)
		defer func() { _ = stdout.Close() }() // nothing was written to it
		in := bufio.NewScanner(stdout)
		in.Buffer(nil, answerBytesMax)
		for in.Scan() {
			lines <- bytes.Clone(in.Bytes())
		}
	}(d.lines)
	return nil
}

// call sends one request and waits for its answer. An answer with an error is that *clientError.
func (d *driver) call(ctx context.Context, r request) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ask(ctx, r)
}

func (d *driver) ask(ctx context.Context, r request) (answer, error) {
	if d.process == nil {
		if err := d.start(); err != nil {
			return answer{}, err
		}
		if r.Op != "hello" {
			if _, err := d.ask(ctx, request{Op: "hello", Bootstrap: d.bootstrap}); err != nil {
				return answer{}, err
			}
		}
	}
	d.lastID++
	r.ID = d.lastID
	if limit, ok := ctx.Deadline(); ok {
		// The driver gives up a little earlier than we do and then says how far it came.
		r.WaitMs = max(time.Until(limit)-time.Second, time.Second).Milliseconds()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, fmt.Errorf("request to a driver: %w", err)
	}
	if _, err := d.stdin.Write(append(line, '\n')); err != nil {
		return answer{}, d.fail(fmt.Errorf("request to a driver: %w", err))
	}
	select {
	case line, ok := <-d.lines:
		if !ok {
			return answer{}, d.fail(errors.New("the driver ended without an answer"))
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return answer{}, d.fail(fmt.Errorf("the driver's answer %.200q: %w", line, err))
		}
		if a.ID != r.ID {
			return answer{}, d.fail(fmt.Errorf("the driver answered request %d when asked %d", a.ID, r.ID))
		}
		if a.Error != nil {
			return answer{}, a.Error
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, d.fail(fmt.Errorf("%s: %w", r.Op, ctx.Err()))
	}
}

// fail ends a driver that cannot be spoken with any more and puts the end of its log into the error.
func (d *driver) fail(err error) error {
	err = errors.Join(err, d.stdin.Close(), d.process.Kill())
	for range d.lines {
	}
	d.process = nil
	return fmt.Errorf("%w\nend of %s:\n%s", err, d.command.Output, peer.Tail(d.command.Output, 15))
}

func (d *driver) hello(ctx context.Context) (hello, error) {
	a, err := d.call(ctx, request{Op: "hello", Bootstrap: d.bootstrap})
	if err != nil {
		return hello{}, err
	}
	if a.Hello == nil {
		return hello{}, errors.New("the driver's hello says nothing")
	}
	return *a.Hello, nil
}

func (d *driver) create(ctx context.Context, topic string, partitions int, config map[string]string) error {
	_, err := d.call(ctx, request{Op: "create", Topic: topic, Count: partitions, Config: config})
	return err
}

func (d *driver) remove(ctx context.Context, topic string) error {
	_, err := d.call(ctx, request{Op: "delete", Topic: topic})
	return err
}

func (d *driver) produce(ctx context.Context, topic string, partition int, c cell, records []record) ([]int64, error) {
	a, err := d.call(ctx, request{Op: "produce", Topic: topic, Partition: partition, cell: c, Records: records})
	return a.Offsets, err
}

func (d *driver) read(ctx context.Context, topic string, partition int, from int64, count int) ([]record, error) {
	a, err := d.call(ctx, request{Op: "read", Topic: topic, Partition: partition, From: from, Count: count})
	return a.Records, err
}

func (d *driver) administer(ctx context.Context, topic string, partitions int, key, value string, below int64) (described, error) {
	a, err := d.call(ctx, request{Op: "admin", Topic: topic, Count: partitions, Config: map[string]string{key: value}, From: below})
	if err != nil {
		return described{}, err
	}
	if a.Admin == nil {
		return described{}, errors.New("the driver's answer describes nothing")
	}
	return *a.Admin, nil
}

// tool runs one command line tool. Only the Java driver can.
func (d *driver) tool(ctx context.Context, main, stdin string, args ...string) (toolResult, error) {
	a, err := d.call(ctx, request{Op: "tool", Main: main, Args: args, Stdin: stdin})
	if err != nil {
		return toolResult{}, err
	}
	if a.Tool == nil {
		return toolResult{}, errors.New("the driver's answer holds no tool result")
	}
	return *a.Tool, nil
}

// join lets a member join a group. It consumes from then on, and journals, until it leaves.
func (d *driver) join(ctx context.Context, m membership) error {
	_, err := d.call(ctx, request{Op: "join", membership: &m})
	return err
}

// leave lets a member leave its group in order; abandoned, it goes without a word, as one that was killed. Only the Java
// driver can abandon.
func (d *driver) leave(ctx context.Context, m membership, abandon bool) error {
	_, err := d.call(ctx, request{Op: "leave", membership: &m, Abandon: abandon})
	return err
}

// commitOffset commits an offset for a group that has no members, and asks the library what is committed then.
func (d *driver) commitOffset(ctx context.Context, group, topic string, partition int, offset int64, metadata string) (committedOffset, error) {
	a, err := d.call(ctx, request{Op: "commit", Topic: topic, Partition: partition, From: offset, Metadata: metadata, membership: &membership{Group: group}})
	if err != nil {
		return committedOffset{}, err
	}
	if a.Committed == nil {
		return committedOffset{}, errors.New("the driver's answer holds no offset")
	}
	return *a.Committed, nil
}

// kill ends the driver's process at once, and with it every member in it. The next call starts another.
func (d *driver) kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return nil
	}
	err := errors.Join(d.stdin.Close(), d.process.Kill())
	for range d.lines {
	}
	d.process = nil
	return err
}

// close ends the driver: a closed standard input is its signal to leave.
func (d *driver) close(ctx context.Context) error {
	if d.process == nil {
		return nil
	}
	err := d.stdin.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range d.lines {
		}
	}()
	select {
	case <-d.process.Exited():
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	err = errors.Join(err, d.process.Kill())
	<-drained
	d.process = nil
	return err
}
