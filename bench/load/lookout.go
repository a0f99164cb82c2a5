package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadataVersion is the newest one that gives leader epochs without flexible fields.
const metadataVersion = 7

// lookout asks one broker again and again who leads partition 0 of a topic.
type lookout struct {
	addr, topic string
	poll        time.Duration
}

// lookoutMax bounds one question: a broker that hangs is asked anew on another connection.
const lookoutMax = 500 * time.Millisecond

func (l lookout) run(ctx context.Context, view *leaderView) {
	frame := l.frame()
	var c *conn
	for ; ctx.Err() == nil; wait(ctx, l.poll) {
		var err error
		if c == nil {
			if c, err = dialWithin(ctx, l.addr, chaseDialMax); err != nil {
				continue
			}
		}
		broker, epoch, err := l.ask(c, frame)
		switch {
		case err == nil:
			view.see(broker, epoch)
		case !isRefused(err):
			c.leave()
			c = nil
		}
	}
	if c != nil {
		c.leave()
	}
}

func (l lookout) frame() []byte {
	r := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &l.topic
	r.Topics = append(r.Topics, t)
	r.SetVersion(metadataVersion)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, r, 0)
}

func (l lookout) ask(c *conn, frame []byte) (broker, epoch int32, err error) {
	if err := c.SetDeadline(time.Now().Add(lookoutMax)); err != nil {
		return -1, -1, err
	}
	if _, err := c.Write(frame); err != nil {
		return -1, -1, err
	}
	body, err := c.response()
	if err != nil {
		return -1, -1, err
	}
	m := kmsg.NewPtrMetadataResponse()
	m.SetVersion(metadataVersion)
	if err := m.ReadFrom(body[4:]); err != nil {
		return -1, -1, fmt.Errorf("metadata of %s: %w", l.addr, err)
	}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			if t.Topic != nil && *t.Topic == l.topic && p.Partition == 0 && p.LeaderEpoch >= 0 {
				return p.Leader, p.LeaderEpoch, nil
			}
		}
	}
	return -1, -1, &refused{errors.New("the broker does not know the partition yet")}
}
