package classic_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestConversations plays the scripts of testdata: a command above the line, below it what was proposed, answered (with the number of the request, and
// after how many entries) and noted, and last the group and its next timer.
//
// go test ./group/classic -run Conversations -rewrite
//
// writes the answers anew. Commit such a diff only when you can say for each changed line why the new answer is the right one: the transcripts are the
// specification.
func TestConversations(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 15 {
		t.Fatalf("%d conversations in testdata, there should be more", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			c := conversation{world: newWorld()}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return c.play(t, d)
			})
		})
	}
}

// conversation is a world that a script speaks to.
type conversation struct {
	*world
	entries []records.Entry
	said    strings.Builder // what the script asked to be shown
}

func (c *conversation) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := args{t: t, d: d, used: map[string]bool{}}
	c.out.Reset()
	c.said.Reset()
	c.do(&a)
	a.allUsed()
	if err := c.g.Check(c.out.Timers); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	c.entries = append(c.entries, c.out.Entries...)
	return c.transcript()
}

func (c *conversation) do(a *args) {
	switch a.d.Cmd {
	case "new":
		*c = conversation{world: newWorld()}
		c.configure(a)
	case "configure":
		c.configure(a)
	case "join":
		c.g.Join(c.now, &c.cfg, c.request(), a.join(), &c.out)
	case "sync":
		c.g.Sync(c.now, &c.cfg, c.request(), a.sync(), &c.out)
	case "heartbeat":
		c.g.Heartbeat(c.now, &c.cfg, c.request(), &coord.Heartbeat{
			Group: "g", Member: a.str("member", ""), Instance: a.str("instance", ""), Generation: int32(a.num("generation", 1)),
		}, &c.out)
	case "leave":
		c.g.Leave(c.now, &c.cfg, c.request(), a.leave(), &c.out)
	case "commit":
		fmt.Fprintln(&c.said, c.g.CheckCommit(c.now, &c.cfg, &coord.Commit{
			Group: "g", Member: a.str("member", ""), Instance: a.str("instance", ""), Generation: int32(a.num("generation", -1)),
		}, &c.out))
	case "fetch":
		fmt.Fprintln(&c.said, c.g.CheckFetch(c.now, &c.cfg, &coord.FetchOffsets{Group: "g", Member: a.str("member", ""), MemberEpoch: -1}, &c.out))
	case "tick":
		c.pass(ident.Instant(a.num("ms", 0)) * millisecond)
	case "rebalance":
		c.g.Rebalance(c.now, &c.cfg, a.str("reason", "asked for"), &c.out)
	case "drop":
		c.g.Drop(a.code("code"), &c.out)
	case "reload":
		c.reload()
	case "load":
		c.reset(a.generation())
	case "show":
		c.show(a)
	default:
		a.t.Fatalf("%s: unknown verb %q", a.d.Pos, a.d.Cmd)
	}
}

func (c *conversation) configure(a *args) {
	c.cfg.ClassicSizeMax = int32(a.num("size-max", int64(c.cfg.ClassicSizeMax)))
	c.cfg.InitialRebalanceDelay = int32(a.num("delay", int64(c.cfg.InitialRebalanceDelay)))
	c.cfg.SessionTimeoutMin = int32(a.num("session-min", int64(c.cfg.SessionTimeoutMin)))
}

// reload is a failover: a new group is made of the entries.
func (c *conversation) reload() {
	var v *records.Generation
	if n := len(c.entries); n > 0 {
		v = c.entries[n-1].(*records.GroupMetadata).Value
	}
	c.reset(v)
}

func (c *conversation) reset(v *records.Generation) {
	c.g = classic.New("g")
	c.g.Apply(v)
	c.out = coord.Out{Timers: coord.NewTimers()}
	c.g.Loaded(c.now, &c.cfg, &c.out)
}

// show shows what the shard asks between commands.
func (c *conversation) show(a *args) {
	for _, what := range a.list("what") {
		switch what {
		case "describe":
			d := c.g.Describe()
			fmt.Fprintf(&c.said, "describe %s type=%s protocol=%s\n", d.State, d.ProtocolType, d.Protocol)
			for _, m := range d.Members {
				fmt.Fprintf(&c.said, "  %s/%s client=%s%s assignment=%s metadata=%d bytes\n", m.Member, m.Instance, m.Client.ID, m.Client.Host, m.Assignment, len(m.Metadata))
			}
		case "members":
			for _, m := range c.g.Members() {
				fmt.Fprintf(&c.said, "member %s/%s session=%d rebalance=%d assignment=%s", m.ID, m.Instance, m.SessionTimeout, m.RebalanceTimeout, m.Assignment)
				for _, p := range m.Protocols {
					fmt.Fprintf(&c.said, " %s", p.Name)
				}
				fmt.Fprintln(&c.said)
			}
		case "expiry":
			fmt.Fprintf(&c.said, "expiry=%s empty since %d\n", [...]string{"never", "all", "unsubscribed", "simple"}[c.g.Expiry()], c.g.EmptySince())
		case "delete":
			fmt.Fprintf(&c.said, "delete %v, delete offsets %v\n", c.g.CheckDelete(), c.g.CheckDeleteOffsets())
		case "vacant":
			fmt.Fprintf(&c.said, "vacant=%v entry=%v\n", c.g.Vacant(), c.g.Entry() != nil)
		default:
			fmt.Fprintf(&c.said, "subscribed to %s: %v\n", what, c.g.Subscribed(what))
		}
	}
}

func (c *conversation) transcript() string {
	var b strings.Builder
	for _, e := range c.out.Entries {
		b.WriteString(drawEntry(e))
	}
	for _, r := range c.out.Replies {
		fmt.Fprintf(&b, "%d", r.Request)
		if r.After > 0 {
			fmt.Fprintf(&b, " after %d", r.After)
		}
		fmt.Fprintf(&b, ": %s\n", drawAnswer(r.Answer))
	}
	for _, n := range c.out.Notes {
		fmt.Fprintf(&b, "note %s", [...]string{"", "rebalance", "stable", "fenced", "empty"}[n.Kind])
		if n.Member != "" {
			fmt.Fprintf(&b, " %s", n.Member)
		}
		if n.Count > 0 {
			fmt.Fprintf(&b, " count=%d", n.Count)
		}
		if n.Text != "" {
			fmt.Fprintf(&b, " (%s)", n.Text)
		}
		fmt.Fprintln(&b)
	}
	b.WriteString(c.said.String())
	b.WriteString(c.g.Draw())
	if due, ok := c.out.Timers.Next(); ok {
		fmt.Fprintf(&b, " next=+%dms", (due-c.now.Mono)/millisecond)
	}
	fmt.Fprintln(&b)
	return b.String()
}

func drawEntry(e records.Entry) string {
	v := e.(*records.GroupMetadata).Value
	var b strings.Builder
	fmt.Fprintf(&b, "entry %s generation=%d type=%s protocol=%s leader=%s time=%d\n", e.GroupID(), v.Generation, v.ProtocolType, str(v.Protocol), str(v.Leader), v.StateTime)
	for _, m := range v.Members {
		fmt.Fprintf(&b, "  %s/%s client=%s%s session=%d rebalance=%d assignment=%s\n",
			m.Member, str(m.Instance), m.ClientID, m.ClientHost, m.SessionTimeout, m.RebalanceTimeout, m.Assignment)
	}
	return b.String()
}

func str(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func drawAnswer(a coord.Answer) string {
	var b strings.Builder
	switch a := any(a).(type) {
	case *coord.JoinReply:
		fmt.Fprintf(&b, "join %v member=%s generation=%d", a.Code, a.Member, a.Generation)
		if a.Code != wire.NoError {
			break
		}
		fmt.Fprintf(&b, " %s:%s leader=%s", a.ProtocolType, a.Protocol, a.Leader)
		if a.SkipAssignment {
			b.WriteString(" skip")
		}
		for _, m := range a.Members {
			fmt.Fprintf(&b, " [%s/%s %d bytes]", m.Member, m.Instance, len(m.Metadata))
		}
	case *coord.SyncReply:
		fmt.Fprintf(&b, "sync %v", a.Code)
		if a.Code == wire.NoError {
			fmt.Fprintf(&b, " %s:%s assignment=%s", a.ProtocolType, a.Protocol, a.Assignment)
		}
	case *coord.HeartbeatReply:
		fmt.Fprintf(&b, "heartbeat %v", a.Code)
	case *coord.LeaveReply:
		fmt.Fprintf(&b, "leave %v", a.Code)
		for _, m := range a.Members {
			fmt.Fprintf(&b, " [%s/%s %v]", m.Member, m.Instance, m.Code)
		}
	default:
		fmt.Fprintf(&b, "%#v", a)
	}
	return b.String()
}
