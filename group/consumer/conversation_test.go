package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestConversations plays the scripts of testdata: a command above the line, below it what the group wrote, answered and noted, and last its state. After
// each line the live state is compared with folds of the log.
//
// go test ./group/consumer -run Conversations -rewrite
//
// writes the answers anew. Commit such a diff only when you can say for each changed line why the new answer is the right one: the transcripts are the
// specification.
func TestConversations(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 10 {
		t.Fatalf("%d conversations in testdata, there should be more", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			c := conversation{world: newWorld(coord.DefaultConfig()), rand: rand.New(rand.NewPCG(1, 2))}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return c.play(t, d)
			})
		})
	}
}

type conversation struct {
	*world
	rand       *rand.Rand
	generation *records.Generation
	b          strings.Builder
}

func (c *conversation) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := &args{t: t, d: d, used: map[string]bool{}}
	c.b.Reset()
	c.do(a)
	a.allUsed()
	c.check(t, c.rand)
	fmt.Fprintf(&c.b, "%s %d/%d", c.g.State(), c.g.Epoch(), c.g.Describe(&c.config, c.topics).AssignmentEpoch)
	for _, key := range c.timers() {
		fmt.Fprint(&c.b, " ", key)
	}
	fmt.Fprintln(&c.b)
	return c.b.String()
}

// timers draws the timers that are not the sessions'.
func (c *conversation) timers() []string {
	var list []string
	names := map[coord.TimerKind]string{
		coord.TimerAssign: "assign", coord.TimerRegex: "regex", coord.TimerRebalance: "rebalance", coord.TimerJoin: "join", coord.TimerSync: "sync",
	}
	for kind, name := range names {
		for _, member := range append([]string{""}, c.g.Members()...) {
			if due, ok := c.out.Timers.Due(coord.TimerKey{Kind: kind, Group: "g", Member: member}); ok {
				list = append(list, fmt.Sprintf("%s(%s)+%d", name, member, (due-c.now.Mono)/millisecond))
			}
		}
	}
	slices.Sort(list)
	return list
}

// drain draws what the last step asked for.
func (c *conversation) drain() {
	c.b.WriteString(showAll(c.out.Entries))
	for _, r := range c.out.Replies {
		fmt.Fprintf(&c.b, "after %d: %s\n", r.After, showAnswer(r.Answer))
	}
	for _, n := range c.out.Notes {
		kind := map[coord.NoteKind]string{coord.NoteMemberFenced: "fenced", coord.NoteEmpty: "empty"}[n.Kind]
		fmt.Fprintf(&c.b, "note: %s %s %s\n", kind, n.Member, n.Text)
	}
}

func (c *conversation) do(a *args) {
	c.begin()
	switch a.d.Cmd {
	case "wait":
		c.wait(a.num("ms", 0)+1000*a.num("s", 0), c.drain)
		return
	case "topics":
		c.topics = a.topics()
		c.g.TopicsChanged(c.now, &c.config, c.topics, &c.out)
	case "configure":
		c.config = a.configure(c.config)
	case "heartbeat":
		c.g.Heartbeat(c.now, &c.config, c.topics, 1, a.heartbeat(c.topics), &c.out)
	case "classic-join":
		c.g.ClassicJoin(c.now, &c.config, c.topics, 1, a.join(), &c.out)
	case "classic-sync":
		c.g.ClassicSync(c.now, &c.config, c.topics, 1, &coord.Sync{
			Group: "g", Member: a.text("member"), Instance: a.text("instance"), Generation: int32(a.num("generation", 0)),
			ProtocolType: a.text("type"), Protocol: a.text("protocol"),
		}, &c.out)
	case "classic-heartbeat":
		c.g.ClassicHeartbeat(c.now, &c.config, c.topics, 1, &coord.Heartbeat{
			Group: "g", Member: a.text("member"), Instance: a.text("instance"), Generation: int32(a.num("generation", 0)),
		}, &c.out)
	case "classic-leave":
		l := &coord.Leave{Group: "g"}
		for _, m := range a.list("members") {
			name, instance, _ := strings.Cut(m, "/")
			l.Members = append(l.Members, coord.LeavingMember{Member: name, Instance: instance})
		}
		c.g.ClassicLeave(c.now, &c.config, c.topics, 1, l, &c.out)
	case "commit":
		m := &coord.Commit{Version: int16(a.num("version", 9)), Group: "g", Member: a.text("member"), Generation: int32(a.num("epoch", -1))}
		for _, p := range a.list("of") {
			name, index := split(a, p)
			m.Topics = append(m.Topics, coord.CommitTopic{Name: name, ID: topicID(name, 1), Partitions: []coord.CommitPartition{{Partition: index}}})
		}
		fmt.Fprintln(&c.b, c.g.CheckCommit(c.now, &c.config, m, &c.out))
	case "fetch":
		f := &coord.FetchOffsets{Group: "g", Member: a.text("member"), MemberEpoch: int32(a.num("epoch", -1))}
		fmt.Fprintln(&c.b, c.g.CheckFetch(c.now, &c.config, f, &c.out))
	case "subscribed":
		fmt.Fprintln(&c.b, c.g.Subscribed(a.text("topic")))
	case "generation":
		c.generation = a.generation()
	case "adopt":
		if err := c.g.Adopt(c.now, &c.config, c.topics, c.generation, nil, &c.out); err != nil {
			fmt.Fprintln(&c.b, "error:", err)
		}
	case "downgrade":
		c.downgrade()
	case "describe":
		c.describe()
	case "apply":
		c.apply(a)
	case "reload":
		log := c.log
		if a.has("compacted") {
			log = compact(log, c.rand, 1)
		}
		c.reload(log)
		c.drain()
		return
	case "delete":
		c.g.Delete(&c.out)
	case "entries":
		c.b.WriteString(showAll(c.g.Entries()))
	default:
		a.t.Fatalf("%s: no verb %s", a.d.Pos, a.d.Cmd)
	}
	c.end()
	c.drain()
}

func (c *conversation) downgrade() {
	if !c.g.Downgradable(&c.config) {
		fmt.Fprintln(&c.b, "not now")
		return
	}
	gen := c.g.Downgrade(c.now, c.topics, &c.out)
	fmt.Fprintf(&c.b, "generation %d %s %s\n", gen.Generation, gen.ProtocolType, *gen.Protocol)
	for _, m := range gen.Members {
		fmt.Fprintf(&c.b, "  %s session=%d subscription=%x assignment=%s\n", m.Member, m.SessionTimeout, m.Subscription, showAssignment(m.Assignment))
	}
}

func (c *conversation) describe() {
	d := c.g.Describe(&c.config, c.topics)
	fmt.Fprintf(&c.b, "%s %s epoch=%d/%d assignor=%s\n", d.Group, d.State, d.GroupEpoch, d.AssignmentEpoch, d.Assignor)
	for _, m := range d.Members {
		fmt.Fprintf(&c.b, "  %s instance=%q rack=%q epoch=%d type=%d topics=%v regex=%q has %s shall %s\n",
			m.Member, m.Instance, m.Rack, m.Epoch, m.Type, m.Topics, m.Regex, showTold(m.Assignment), showTold(m.Target))
	}
}

// apply gives the group entries as a load does: lines of the form "current a gone".
func (c *conversation) apply(a *args) {
	for line := range strings.Lines(a.d.Input) {
		f := strings.Fields(line)
		var e records.Entry
		switch {
		case len(f) == 2 && f[0] == "group":
			e = &records.ConsumerGroup{Group: "g"}
		case len(f) == 2 && f[0] == "target":
			e = &records.Target{Group: "g"}
		case len(f) == 3 && f[0] == "member":
			e = &records.ConsumerMember{Group: "g", Member: f[1]}
		case len(f) == 3 && f[0] == "target":
			e = &records.TargetMember{Group: "g", Member: f[1]}
		case len(f) == 3 && f[0] == "current":
			e = &records.Current{Group: "g", Member: f[1]}
		case len(f) == 3 && f[0] == "regex":
			e = &records.Regex{Group: "g", Pattern: f[1]}
		case len(f) == 3 && f[0] == "state":
			state := records.MemberState(127)
			e = &records.Current{Group: "g", Member: f[1], Value: &records.CurrentAssignment{MemberEpoch: int32(len(f[2])), State: state}}
		default:
			a.t.Fatalf("%s: %q is no entry", a.d.Pos, line)
		}
		c.g.Apply(e)
		c.log = append(c.log, e)
	}
}

func showAnswer(answer coord.Answer) string {
	switch r := answer.(type) {
	case *coord.ConsumerHeartbeatReply:
		s := fmt.Sprintf("%v member=%s epoch=%d", r.Code, r.Member, r.MemberEpoch)
		if r.HeartbeatInterval != 0 {
			s += fmt.Sprintf(" interval=%d", r.HeartbeatInterval)
		}
		if r.Assigned {
			s += " use " + showTold(r.Assignment)
		}
		if r.Message != "" {
			s += ": " + r.Message
		}
		return s
	case *coord.JoinReply:
		return fmt.Sprintf("join %v member=%s generation=%d %s leader=%q", r.Code, r.Member, r.Generation, r.Protocol, r.Leader)
	case *coord.SyncReply:
		return fmt.Sprintf("sync %v %s", r.Code, showAssignment(r.Assignment))
	case *coord.HeartbeatReply:
		return fmt.Sprintf("heartbeat %v", r.Code)
	case *coord.LeaveReply:
		s := fmt.Sprintf("leave %v", r.Code)
		for _, m := range r.Members {
			s += fmt.Sprintf(" %s/%s:%v", m.Member, m.Instance, m.Code)
		}
		return s
	case *coord.CodeReply, *coord.CommitReply, *coord.ConsumerDescribeReply, *coord.DeleteOffsetsReply, *coord.DescribeReply, *coord.ErrorReply,
		*coord.FetchOffsetsReply, *coord.InspectReply, *coord.ListReply:
	}
	return fmt.Sprintf("%T", answer)
}

// args reads the arguments of one line and fails on what it does not know.
type args struct {
	t    *testing.T
	d    *datadriven.TestData
	used map[string]bool
}

func (a *args) find(key string) (datadriven.CmdArg, bool) {
	a.used[key] = true
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key {
			return arg, true
		}
	}
	return datadriven.CmdArg{}, false
}

func (a *args) has(key string) bool { _, ok := a.find(key); return ok }

// list reads a list; "none" is one that is there and empty.
func (a *args) list(key string) []string {
	arg, ok := a.find(key)
	if !ok {
		return nil
	}
	if len(arg.Vals) == 1 && arg.Vals[0] == "none" {
		return []string{}
	}
	return arg.Vals
}

func (a *args) text(key string) string {
	arg, _ := a.find(key)
	return strings.Join(arg.Vals, "")
}

// optional reads a text that may be absent; "none" is one that is there and empty.
func (a *args) optional(key string) *string {
	if !a.has(key) {
		return nil
	}
	s := a.text(key)
	if s == "none" {
		s = ""
	}
	return &s
}

func (a *args) num(key string, otherwise int64) int64 {
	arg, ok := a.find(key)
	if !ok {
		return otherwise
	}
	var n int64
	if _, err := fmt.Sscanf(strings.Join(arg.Vals, ""), "%d", &n); err != nil {
		a.t.Fatalf("%s: %s is not a number", a.d.Pos, arg)
	}
	return n
}

func (a *args) allUsed() {
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.t.Fatalf("%s: %s does not know %s", a.d.Pos, a.d.Cmd, arg)
		}
	}
}

// topics reads lines of the form "name partitions [life=2]".
func (a *args) topics() topicView {
	var v topicView
	for line := range strings.Lines(a.d.Input) {
		t, life := coord.Topic{}, 1
		for i, f := range strings.Fields(line) {
			switch i {
			case 0:
				t.Name = f
			case 1:
				t.Partitions = number(a, f)
			default:
				life = int(number(a, strings.TrimPrefix(f, "life=")))
			}
		}
		t.ID = topicID(t.Name, life)
		v = append(v, t)
	}
	slices.SortFunc(v, func(a, b coord.Topic) int { return strings.Compare(a.Name, b.Name) })
	return v
}

func (a *args) configure(c coord.Config) coord.Config {
	c.Consumer.AssignmentInterval = int32(a.num("assignment-interval", int64(c.Consumer.AssignmentInterval)))
	c.Consumer.SessionTimeout = int32(a.num("session", int64(c.Consumer.SessionTimeout)))
	c.Consumer.HeartbeatInterval = int32(a.num("heartbeat", int64(c.Consumer.HeartbeatInterval)))
	c.ConsumerSizeMax = int32(a.num("size-max", int64(c.ConsumerSizeMax)))
	if l := a.list("assignors"); l != nil {
		c.Assignors = l
	}
	if a.has("migration") {
		c.MigrationUp = a.text("migration") == "upgrade" || a.text("migration") == "bidirectional"
		c.MigrationDown = a.text("migration") == "downgrade" || a.text("migration") == "bidirectional"
	}
	return c
}

func split(a *args, name string) (topic string, index int32) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		a.t.Fatalf("%s: %s is no partition", a.d.Pos, name)
	}
	return name[:i], number(a, name[i+1:])
}

func number(a *args, s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		a.t.Fatalf("%s: %v", a.d.Pos, err)
	}
	return int32(n)
}

// owned reads partitions like t1-0.
func (a *args) owned(topics topicView) []coord.TopicPartitions {
	names := a.list("owned")
	if names == nil {
		return nil
	}
	list := []coord.TopicPartitions{}
	for _, name := range names {
		topic, index := split(a, name)
		id := topicID(topic, 1)
		if t, ok := topics.ByName(topic); ok {
			id = t.ID
		}
		i := slices.IndexFunc(list, func(p coord.TopicPartitions) bool { return p.Topic == id })
		if i < 0 {
			i = len(list)
			list = append(list, coord.TopicPartitions{Topic: id})
		}
		list[i].Partitions = append(list[i].Partitions, index)
	}
	return list
}

// heartbeat reads a request. With epoch 0 what a join must have is there unless the script says otherwise.
func (a *args) heartbeat(topics topicView) *coord.ConsumerHeartbeat {
	c := &coord.ConsumerHeartbeat{
		Group: "g", Member: a.text("member"), NewMember: a.text("new"), Client: coord.Client{ID: "client", Host: "/127.0.0.1"},
		MemberEpoch: int32(a.num("epoch", 0)), Instance: a.optional("instance"), Rack: a.optional("rack"),
		Topics: a.list("topics"), Regex: a.optional("regex"), Assignor: a.optional("assignor"), Owned: a.owned(topics),
	}
	timeout := int64(-1)
	if c.MemberEpoch == 0 {
		timeout = 300_000
		if c.Owned == nil && !a.has("bare") {
			c.Owned = []coord.TopicPartitions{}
		}
	}
	c.RebalanceTimeout = int32(a.num("rebalance", timeout))
	return c
}

// join reads a JoinGroup; protocols=(range,sticky) share one subscription.
func (a *args) join() *coord.Join {
	c := &coord.Join{
		Group: "g", Member: a.text("member"), Instance: a.text("instance"), NewMember: a.text("new"), Client: coord.Client{ID: "client", Host: "/127.0.0.1"},
		ProtocolType: "consumer", SessionTimeout: int32(a.num("session", 30_000)), RebalanceTimeout: int32(a.num("rebalance", 60_000)),
		RequireKnownMember: a.has("require"),
	}
	if a.has("type") {
		c.ProtocolType = a.text("type")
	}
	names := a.list("protocols")
	if names == nil {
		names = []string{"range"}
	}
	metadata := a.subscription()
	for _, name := range names {
		c.Protocols = append(c.Protocols, coord.Protocol{Name: name, Metadata: metadata})
	}
	return c
}

func (a *args) subscription() []byte {
	if a.has("malformed") {
		return []byte{0, 1, 0, 0, 0, 9}
	}
	s := subscriptionOf(int16(a.num("protocol-version", 3)), a.list("topics"))
	s.rack = a.optional("rack")
	for _, name := range a.list("owned") {
		topic, index := split(a, name)
		s.own(topic, index)
	}
	return s.encode()
}

// generation reads a classic generation: lines of the form "member topics=t1,t2 has=t1-0,t1-1 [session=30000]".
func (a *args) generation() *records.Generation {
	protocol, leader := "range", ""
	gen := &records.Generation{ProtocolType: "consumer", Generation: int32(a.num("number", 7)), Protocol: &protocol, Leader: &leader, StateTime: ident.Millis(5)}
	if a.has("type") {
		gen.ProtocolType = a.text("type")
	}
	for line := range strings.Lines(a.d.Input) {
		m := records.ClassicMember{ClientID: "client", ClientHost: "/127.0.0.1", RebalanceTimeout: 60_000, SessionTimeout: 30_000}
		s, has := subscriptionOf(1, nil), subscriptionOf(1, nil)
		var userData []byte
		for i, f := range strings.Fields(line) {
			key, value, _ := strings.Cut(f, "=")
			switch {
			case i == 0:
				m.Member = f
			case key == "instance":
				m.Instance = &value
			case key == "topics":
				s.topics = strings.Split(value, ",")
			case key == "has":
				for name := range strings.SplitSeq(value, ",") {
					topic, index := split(a, name)
					has.own(topic, index)
				}
			case key == "user-data":
				userData = []byte(value)
			}
		}
		m.Subscription = s.encode()
		m.Assignment = has.encodeAssignment(userData)
		if leader == "" {
			leader = m.Member
		}
		gen.Members = append(gen.Members, m)
	}
	return gen
}
