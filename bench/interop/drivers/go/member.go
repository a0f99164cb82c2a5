package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// membership says as what to consume in a group.
type membership struct {
	Member   string   `json:"member"` // what the suite calls it; the broker never hears of it
	Group    string   `json:"group"`
	Topics   []string `json:"topics"`
	Pattern  string   `json:"pattern"`  // in place of Topics: a regular expression
	Protocol string   `json:"protocol"` // classic or consumer
	Assignor string   `json:"assignor"`
	Reset    string   `json:"reset"`    // earliest or latest
	Instance string   `json:"instance"` // of a static member: group.instance.id
	// SessionMs is for the classic protocol; in the other the broker says.
	SessionMs int `json:"sessionMs"`
	// Seek moves one partition of the first topic when it is first assigned.
	Seek *seek  `json:"seek"`
	Log  string `json:"log"`
}

type seek struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
}

func (m membership) session() time.Duration   { return time.Duration(m.SessionMs) * time.Millisecond }
func (m membership) heartbeat() time.Duration { return m.session() / 10 }

// journal is the file into which a member writes what happened to it, a line an event, at once: what it wrote is there
// when its process is killed. What is got is written before it is committed.
//
//	got 1700000000000 topic 3 41
//	committed 1700000000001 topic 3 42
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func newJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: file}, nil
}

// write writes an event: assigned, revoked, got, committed.
func (j *journal) write(kind, topic string, partition int32, offset int64) {
	j.line(fmt.Sprintf("%s %d %s %d %d\n", kind, time.Now().UnixMilli(), topic, partition, offset))
}

// refused notes a commit that the broker did not take, as after a rebalance.
func (j *journal) refused(err error) {
	j.line(fmt.Sprintf("refused %d %q\n", time.Now().UnixMilli(), err.Error()))
}

func (j *journal) line(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.WriteString(line); err != nil {
		panic(err) // the suite's verdict rests on the file
	}
}

// running are the members in this process.
type running struct {
	mu      sync.Mutex
	members map[string]*runningMember
}

type runningMember struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// join starts a member and returns; leave tells how it went.
func (r *running) join(c client, m membership) error {
	j, err := newJournal(m.Log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	member := &runningMember{cancel: cancel, done: make(chan struct{})}
	r.mu.Lock()
	r.members[m.Member] = member
	r.mu.Unlock()
	go func() {
		defer close(member.done)
		member.err = c.join(ctx, m, j)
		if member.err != nil {
			j.line(fmt.Sprintf("failed %d %q\n", time.Now().UnixMilli(), member.err.Error()))
		}
		if err := j.file.Close(); err != nil && member.err == nil {
			member.err = err
		}
	}()
	return nil
}

// leave lets a member go in order and waits for it.
func (r *running) leave(ctx context.Context, name string) error {
	r.mu.Lock()
	member, ok := r.members[name]
	delete(r.members, name)
	r.mu.Unlock()
	if !ok {
		return fmt.Errorf("no member %q here", name)
	}
	member.cancel()
	select {
	case <-member.done:
		return member.err
	case <-ctx.Done():
		return fmt.Errorf("the member %s does not end: %w", name, ctx.Err())
	}
}
