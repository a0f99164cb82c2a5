package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/peer"
)

const (
	commitConns     = 4
	commitsInFlight = 16
	commitSize      = 10 // partitions in a request
)

// generatorWord as the first argument makes this program a generator of commits: a process of its own, so that who measures does not wait for who loads. It
// commits until its standard input ends, and answers each line there with the number of offsets that were committed so far.
const generatorWord = "generate"

// generator is such a process, as its parent sees it.
type generator struct {
	*peer.Process
	ask    *os.File
	answer *bufio.Reader
	out    *os.File
}

// generated is what a generator has done so far.
type generated struct {
	committed int64
	cpu       time.Duration
}

func (b *bench) startGenerator(ctx context.Context, s *server, l commitLoad) (*generator, error) {
	for i := range commitConns {
		if err := awaitCoordinator(ctx, s.addr, commitGroup(i)); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, ask, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answer, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), ask.Close())
	}
	p, err := peer.Start(peer.Command{
		Path: self, Args: []string{generatorWord, "-addr", s.addr, "-topic", b.topic, "-rate", fmt.Sprint(l.rate), fmt.Sprintf("-hollow=%v", l.hollow)},
		Output: b.dir + "/generator.log", Stdin: in, Stdout: out,
	})
	if err := errors.Join(err, in.Close(), out.Close()); err != nil {
		return nil, errors.Join(err, ask.Close(), answer.Close())
	}
	g := &generator{Process: p, ask: ask, answer: bufio.NewReader(answer), out: answer}
	if _, err := g.look(); err != nil { // it is there
		return nil, errors.Join(err, g.stop())
	}
	return g, nil
}

// look asks how far it is.
func (g *generator) look() (generated, error) {
	if _, err := g.ask.WriteString("\n"); err != nil {
		return generated{}, errors.Join(err, g.Err())
	}
	var n generated
	if _, err := fmt.Fscanln(g.answer, &n.committed); err != nil {
		return generated{}, errors.Join(fmt.Errorf("generator: %w", err), g.Err())
	}
	u, err := g.Usage()
	n.cpu = u.CPU()
	return n, err
}

// stop lets it end. What went wrong there stands in its log, and its exit code says so.
func (g *generator) stop() error {
	err := g.ask.Close()
	select {
	case <-g.Exited():
	case <-time.After(patience):
		err = errors.Join(err, g.Kill())
	}
	if code := g.ExitCode(); code != 0 {
		err = errors.Join(err, fmt.Errorf("the generator ended with %d; its log says why", code))
	}
	return errors.Join(err, g.out.Close())
}

func commitGroup(i int) string { return fmt.Sprintf("commits-%d", i) }

// generate is the main function of a generator.
func generate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(generatorWord, flag.ContinueOnError)
	addr := flags.String("addr", "", "the broker")
	topic := flags.String("topic", "", "whose offsets are committed")
	rate := flags.Int("rate", 0, "offsets a second; 0: as fast as answers come")
	hollow := flags.Bool("hollow", false, "talk to this process instead of the broker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sinks sync.WaitGroup
	if *hollow {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*addr = l.Addr().String()
		sinks.Go(func() { sink(l) })
		defer sinks.Wait()
		defer l.Close() //nolint:errcheck // what it was for is over
	}
	var committed atomic.Int64
	var committers sync.WaitGroup
	errs := make(chan error, commitConns)
	for i := range commitConns {
		p := pace{}
		if *rate > 0 {
			p.every = time.Second * commitConns * commitSize / time.Duration(*rate)
		}
		committers.Go(func() { errs <- commitOn(ctx, *addr, commitGroup(i), *topic, p, &committed) })
	}
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		fmt.Println(committed.Load())
	}
	cancel()
	committers.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// pace says when requests are due. Who is late catches up.
type pace struct {
	every time.Duration // 0: at once
	next  time.Time
}

// wait returns when the next request is due.
func (p *pace) wait() {
	if p.every == 0 {
		return
	}
	if p.next.IsZero() {
		p.next = time.Now()
	}
	time.Sleep(time.Until(p.next))
	p.next = p.next.Add(p.every)
}

// commitOn commits offsets of a simple consumer on one connection, with some requests always under way.
func commitOn(ctx context.Context, addr, group, topic string, pace pace, committed *atomic.Int64) error {
	c, err := dial(ctx, addr, group)
	if err != nil {
		return err
	}
	defer c.leave()
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation = 8, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	t.Partitions = make([]kmsg.OffsetCommitRequestTopicPartition, commitSize)
	r.Topics = append(r.Topics, t)
	var due []int32
	for offset := int64(0); ; offset++ {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			p.Partition, p.Offset, p.LeaderEpoch = int32((int(offset)*commitSize+i)%partitions), offset, -1
		}
		pace.wait()
		over := ctx.Err() != nil
		if !over {
			id, err := c.send(r)
			if err != nil {
				return err
			}
			due = append(due, id)
		}
		if len(due) == 0 {
			return nil
		}
		if len(due) < commitsInFlight && !over {
			continue
		}
		if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		a, err := c.receive(r, due[0])
		if err != nil {
			return fmt.Errorf("OffsetCommit: %w", err)
		}
		due = due[1:]
		for _, t := range a.(*kmsg.OffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return failed("OffsetCommit", p.ErrorCode)
				}
				committed.Add(1)
			}
		}
	}
}

// sink answers commits without a broker: the same bytes, and no work.
func sink(l net.Listener) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		conns.Go(func() {
			defer c.Close() //nolint:errcheck // whoever sends sees it
			_ = answerCommits(c)
		})
	}
}

// answerCommits says yes to each request until the connection ends.
func answerCommits(c net.Conn) error {
	read := bufio.NewReader(c)
	answer := kmsg.NewPtrOffsetCommitResponse()
	answer.Version = 8
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Version = 8
	var out []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(read, size[:]); err != nil {
			return err
		}
		b := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(read, b); err != nil {
			return err
		}
		client := int(binary.BigEndian.Uint16(b[8:]))
		if err := request.ReadFrom(b[10+client+1:]); err != nil { // a flexible header ends with the count of its tags
			return err
		}
		answer.Topics = answer.Topics[:0]
		for _, t := range request.Topics {
			at := kmsg.NewOffsetCommitResponseTopic()
			at.Topic = t.Topic
			for _, p := range t.Partitions {
				ap := kmsg.NewOffsetCommitResponseTopicPartition()
				ap.Partition = p.Partition
				at.Partitions = append(at.Partitions, ap)
			}
			answer.Topics = append(answer.Topics, at)
		}
		out = append(out[:0], 0, 0, 0, 0)
		out = append(out, b[4:8]...)
		out = append(out, 0)
		out = answer.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}
