// Command go drives the Kafka clients written in Go for the interop suite: franz-go, sarama, kafka-go. It is a module
// of its own so that their dependencies are not the broker's.
//
// It reads one JSON request a line from standard input and writes one JSON answer a line to standard output, as the
// package comment of bench/interop describes. -client chooses the library; one process drives one of them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// request is one line of standard input.
type request struct {
	ID        int               `json:"id"`
	Op        string            `json:"op"`
	Bootstrap string            `json:"bootstrap"` // brokers, separated by commas
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Count     int               `json:"count"`
	Config    map[string]string `json:"config"`
	produce
	membership
	From     int64  `json:"from"`
	Metadata string `json:"metadata"`
	WaitMs   int    `json:"waitMs"`
}

// produce says how records are written.
type produce struct {
	Codec      string `json:"codec"`
	Acks       int    `json:"acks"`
	Idempotent bool   `json:"idempotent"`
	// BatchRecords is the most records of a batch, about; 0 leaves that to the library's largest batch.
	BatchRecords int `json:"batchRecords"`
	// Patient asks for as many attempts as it takes to find another leader.
	Patient bool     `json:"patient"`
	Records []record `json:"records"`
}

// record is one record in either direction. A nil Key, Value or header value is Kafka's null.
type record struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp int64    `json:"timestamp"`
	Offset    int64    `json:"offset"`
}

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// answer is one line of standard output.
type answer struct {
	ID      int      `json:"id"`
	Error   *failure `json:"error,omitempty"`
	Hello   *hello   `json:"hello,omitempty"`
	Offsets []int64  `json:"offsets,omitempty"`
	Records []record `json:"records,omitempty"`
	Admin   *topic   `json:"admin,omitempty"`

	Committed *committed `json:"committed,omitempty"`
}

// committed is what a group has committed for a partition.
type committed struct {
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
}

// topic is one as administrative requests show it; offsets are those of partition 0.
type topic struct {
	Partitions int    `json:"partitions"`
	Value      string `json:"value"`
	Earliest   int64  `json:"earliest"`
	Latest     int64  `json:"latest"`
}

// failure is an error as the client gave it; Code is the protocol's error code where the client tells it.
type failure struct {
	Code    *int16 `json:"code,omitempty"`
	Message string `json:"message"`
}

// hello says what a client is and what it cannot do.
type hello struct {
	Client     string   `json:"client"`
	Version    string   `json:"version"`
	Codecs     []string `json:"codecs"`
	Idempotent bool     `json:"idempotent"`
	Lacks      []string `json:"lacks"`
	// Groups are the ways in which it can be a member of a group: protocol/assignor.
	Groups []string `json:"groups"`
}

// client is one library. Each call is complete when it returns: what it started is closed.
type client interface {
	hello() hello
	create(ctx context.Context, topic string, partitions int32, config map[string]string) error
	remove(ctx context.Context, topic string) error
	produce(ctx context.Context, topic string, partition int32, p produce) ([]int64, error)
	read(ctx context.Context, topic string, partition int32, from int64, count int) ([]record, error)
	// administer lets a topic have so many partitions (it may have them already), sets a config, deletes the records of
	// partition 0 below an offset where the library can, and describes what there is then.
	administer(ctx context.Context, topic string, partitions int, key, value string, below int64) (topic, error)
	// join is a member of a group until ctx ends, and then leaves it in order. It journals what happens to it.
	join(ctx context.Context, m membership, j *journal) error
	// commit commits an offset for a group without members and asks for it again.
	commit(ctx context.Context, group, topic string, partition int32, offset int64, metadata string) (committed, error)
	// code finds the protocol's error code in an error of this library.
	code(err error) (int16, bool)
}

func main() {
	name := flag.String("client", "", "franz-go, sarama, sarama-max or kafka-go")
	flag.Parse()
	if err := serve(*name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(name string) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	var c client
	members := &running{members: map[string]*runningMember{}}
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return fmt.Errorf("bad request line: %w", err)
		}
		if r.Op == "hello" {
			var err error
			if c, err = newClient(name, strings.Split(r.Bootstrap, ",")); err != nil {
				return err
			}
		}
		if c == nil {
			return errors.New("the first request must be hello")
		}
		if err := out.Encode(handle(c, members, r)); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return in.Err()
}

func newClient(name string, bootstrap []string) (client, error) {
	switch name {
	case "franz-go":
		return &franz{bootstrap}, nil
	case "sarama":
		return newSarama(name, bootstrap), nil
	case "sarama-max":
		return newSarama(name, bootstrap), nil
	case "kafka-go":
		return &segmentio{bootstrap}, nil
	}
	return nil, fmt.Errorf("no client %q here: franz-go, sarama, sarama-max or kafka-go", name)
}

func handle(c client, members *running, r request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if r.WaitMs > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(r.WaitMs)*time.Millisecond)
		defer cancel()
	}
	a := answer{ID: r.ID}
	var err error
	switch r.Op {
	case "hello":
		h := c.hello()
		a.Hello = &h
	case "create":
		err = c.create(ctx, r.Topic, int32(r.Count), r.Config)
	case "delete":
		err = c.remove(ctx, r.Topic)
	case "produce":
		a.Offsets, err = c.produce(ctx, r.Topic, r.Partition, r.produce)
	case "read":
		a.Records, err = c.read(ctx, r.Topic, r.Partition, r.From, r.Count)
	case "admin":
		var t topic
		for key, value := range r.Config {
			t, err = c.administer(ctx, r.Topic, r.Count, key, value, r.From)
		}
		a.Admin = &t
	case "join":
		err = members.join(c, r.membership)
	case "leave":
		err = members.leave(ctx, r.Member)
	case "commit":
		var got committed
		got, err = c.commit(ctx, r.Group, r.Topic, r.Partition, r.From, r.Metadata)
		a.Committed = &got
	default:
		err = fmt.Errorf("no operation %q", r.Op)
	}
	if err != nil {
		a.Error = &failure{Message: err.Error()}
		if code, ok := c.code(err); ok {
			a.Error.Code = &code
		}
	}
	return a
}

// linger is called before a producer is closed. Records sent with acks=0 may still be on their way then, and a broker
// need not serve what a connection that has ended left behind: programs that close at once lose them, with every broker.
func linger(p produce) {
	if p.Acks == 0 {
		time.Sleep(200 * time.Millisecond)
	}
}

// moduleVersion is the version of a library that this binary was linked with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "unknown"
}

// keep copies what a library may reuse. Null stays null and empty stays empty.
func keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
