package group_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestConversations plays the scripts of testdata: a command above the line, below it what the shard asked of its shell: entries, replies, notes. Replies
// say how many entries they wait for. After every step the live state is compared with the fold of the log.
//
// go test ./group -run Conversations -rewrite
//
// writes the answers anew. Commit such a diff only when you can say for each changed line why the new answer is the right one: the transcripts are the
// specification.
func TestConversations(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 7 {
		t.Fatalf("%d conversations in testdata, there should be more", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			config := coord.DefaultConfig()
			c := conversation{world: newWorld(config)}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return c.play(t, d)
			})
		})
	}
}

type conversation struct{ *world }

func (c *conversation) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := &args{t: t, d: d, used: map[string]bool{}}
	entries, replies, notes := c.do(a)
	a.allUsed()
	c.check(t, c.log)
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&b, show(e))
	}
	for _, r := range replies {
		fmt.Fprintf(&b, "reply %d after %d: %s\n", r.Request, r.After, showAnswer(r.Answer))
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "note %s\n", showNote(n))
	}
	return b.String()
}

func showNote(n coord.Note) string {
	kinds := map[coord.NoteKind]string{
		coord.NoteRebalance: "rebalance", coord.NoteStable: "stable", coord.NoteMemberFenced: "member-fenced", coord.NoteEmpty: "empty",
		coord.NoteOffsetExpired: "offsets-expired", coord.NoteCommitted: "committed", coord.NoteJump: "jump", coord.NoteConverted: "converted",
	}
	s := fmt.Sprintf("%s %q", kinds[n.Kind], n.Group)
	if n.Member != "" {
		s += " " + n.Member
	}
	if n.Count != 0 {
		s += fmt.Sprintf(" count=%d", n.Count)
	}
	if n.Text != "" {
		s += ": " + n.Text
	}
	return s
}

func (c *conversation) do(a *args) ([]records.Entry, []coord.Reply, []coord.Note) {
	switch verb := a.d.Cmd; verb {
	case "wait":
		return c.wait(a.num("ms", 0) + 1000*a.num("s", 0) + 60_000*a.num("min", 0))
	case "reload":
		before := c.log
		c.shard, c.out = c.fold(before), coord.Out{}
		c.shard.Loaded(c.now, &c.out)
		c.log = append(c.log, c.out.Entries...)
	case "topics":
		c.topics = newTopics(a.topics()...)
		c.step(&coord.TopicsChanged{Topics: c.topics})
	case "topic-deleted":
		c.step(&coord.TopicsDeleted{Topics: []coord.DeletedTopic{{Name: a.text("name"), ID: topicID(a.text("name"), int(a.num("life", 1)))}}})
	case "configure":
		c.config = a.config(c.config)
		c.step(&coord.Configure{Config: c.config})
	case "entries":
		return c.shard.Entries(), nil, nil
	default:
		command := a.command(verb)
		if command == nil {
			a.t.Fatalf("%s: no verb %s", a.d.Pos, verb)
		}
		c.step(command)
	}
	return c.out.Entries, c.out.Replies, c.out.Notes
}

// command reads a command that clients send.
func (a *args) command(verb string) coord.Command {
	name := a.text("group")
	switch verb {
	case "commit":
		return &coord.Commit{
			Version: int16(a.num("version", 8)), Group: name, Member: a.text("member"), Instance: a.text("instance"),
			Generation: int32(a.num("generation", -1)), Retention: a.num("retention", -1), Client: a.client(), Topics: a.offsets(),
		}
	case "fetch":
		f := &coord.FetchOffsets{Version: int16(a.num("version", 8)), Group: name, Member: a.text("member"), MemberEpoch: int32(a.num("epoch", -1)), Client: a.client(), All: a.has("all")}
		for _, p := range a.list("of") {
			topic, number := a.partition(p)
			f.Topics = append(f.Topics, coord.FetchTopic{Name: topic, ID: a.id(topic), Partitions: []coord.FetchPartition{{
				Partition: number, LogStart: ident.Offset(a.num("log-start", -1)), HighWatermark: ident.Offset(a.num("high-watermark", -1)),
			}}})
		}
		return f
	case "delete-offsets":
		c := &coord.DeleteOffsets{Group: name}
		for _, p := range a.list("of") {
			topic, number := a.partition(p)
			c.Topics = append(c.Topics, coord.DeleteTopic{Name: topic, Partitions: []int32{number}})
		}
		return c
	case "jumped":
		topic, number := a.partition(a.text("of"))
		return &coord.Jumped{Client: a.client(), Topic: topic, Partition: number, Timestamp: a.num("timestamp", -1), Target: ident.Offset(a.num("target", 0)), At: ident.Millis(a.num("at", 0))}
	case "describe":
		return &coord.Describe{Group: name}
	case "consumer-describe":
		return &coord.ConsumerDescribe{Group: name}
	case "list":
		return &coord.List{States: a.list("states"), Types: a.list("types")}
	case "delete":
		return &coord.Delete{Group: name}
	case "inspect":
		return &coord.Inspect{Group: name}
	}
	return a.memberCommand(verb, name)
}

// memberCommand reads a command of group members.
func (a *args) memberCommand(verb, name string) coord.Command {
	member, instance := a.text("member"), a.text("instance")
	switch verb {
	case "join":
		c := &coord.Join{
			Group: name, Member: member, Instance: instance, NewMember: a.text("new"), Client: a.client(), ProtocolType: a.textOr("type", "consumer"),
			SessionTimeout: int32(a.num("session", 10_000)), RebalanceTimeout: int32(a.num("rebalance", 60_000)), RequireKnownMember: a.has("require-known"),
		}
		for _, p := range a.listOr("protocols", "range") {
			c.Protocols = append(c.Protocols, coord.Protocol{Name: p, Metadata: subscription(a.list("topics"), a.list("owned"))})
		}
		return c
	case "sync":
		c := &coord.Sync{Group: name, Member: member, Instance: instance, Generation: int32(a.num("generation", 1))}
		for _, m := range a.list("assign") {
			id, what, _ := strings.Cut(m, ":")
			c.Assignments = append(c.Assignments, coord.MemberAssignment{Member: id, Assignment: []byte(what)})
		}
		return c
	case "heartbeat":
		return &coord.Heartbeat{Group: name, Member: member, Instance: instance, Generation: int32(a.num("generation", 1))}
	case "leave":
		c := &coord.Leave{Group: name}
		for _, m := range a.list("members") {
			c.Members = append(c.Members, coord.LeavingMember{Member: m})
		}
		return c
	case "consumer-heartbeat":
		c := &coord.ConsumerHeartbeat{
			Group: name, Member: member, NewMember: a.text("new"), Client: a.client(), MemberEpoch: int32(a.num("epoch", 0)),
			RebalanceTimeout: int32(a.num("rebalance", -1)), Topics: a.list("topics"),
		}
		if c.MemberEpoch == 0 {
			c.RebalanceTimeout, c.Owned = 60_000, []coord.TopicPartitions{}
		}
		if a.has("owned") {
			c.Owned = a.owned()
		}
		return c
	}
	return nil
}

// args reads the arguments of one line and fails on what it does not know.
type args struct {
	t    *testing.T
	d    *datadriven.TestData
	used map[string]bool
}

func (a *args) list(key string) []string {
	a.used[key] = true
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key {
			return arg.Vals
		}
	}
	return nil
}

func (a *args) listOr(key, otherwise string) []string {
	if got := a.list(key); got != nil {
		return got
	}
	return []string{otherwise}
}

func (a *args) has(key string) bool {
	a.used[key] = true
	return a.d.HasArg(key)
}

func (a *args) text(key string) string { return strings.Join(a.list(key), ",") }

func (a *args) textOr(key, otherwise string) string {
	if a.has(key) {
		return a.text(key)
	}
	return otherwise
}

func (a *args) num(key string, otherwise int64) int64 {
	if !a.has(key) {
		return otherwise
	}
	n, err := strconv.ParseInt(a.text(key), 10, 64)
	if err != nil {
		a.t.Fatalf("%s: %s: %v", a.d.Pos, key, err)
	}
	return n
}

func (a *args) client() coord.Client {
	return coord.Client{ID: a.textOr("client", "app"), Host: a.textOr("host", "/10.0.0.1")}
}

// partition reads topic-number.
func (a *args) partition(s string) (string, int32) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		a.t.Fatalf("%s: %q is not topic-number", a.d.Pos, s)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	if err != nil {
		a.t.Fatalf("%s: %q is not topic-number", a.d.Pos, s)
	}
	return s[:i], int32(n)
}

// id is the topic's id in the life that the line says; none: the request has only names.
func (a *args) id(topic string) ident.TopicID {
	if life := a.num("life", 0); life > 0 {
		return topicID(topic, int(life))
	}
	return ident.TopicID{}
}

// offsets reads offsets=(topic-0:10,topic-1:20:metadata), one topic after the other; refused ones are topic-0:!CODE.
func (a *args) offsets() []coord.CommitTopic {
	var topics []coord.CommitTopic
	for _, s := range a.list("offsets") {
		parts := strings.Split(s, ":")
		topic, number := a.partition(parts[0])
		p := coord.CommitPartition{Partition: number, LeaderEpoch: ident.LeaderEpoch(a.num("leader-epoch", -1))}
		if code, refused := strings.CutPrefix(parts[1], "!"); refused {
			p.Code = int16(a.code(code))
		} else if n, err := strconv.ParseInt(parts[1], 10, 64); err == nil {
			p.Offset = ident.Offset(n)
		} else {
			a.t.Fatalf("%s: %v", a.d.Pos, err)
		}
		if len(parts) > 2 {
			p.Metadata = strings.Repeat(parts[2], int(a.num("repeat", 1)))
		}
		if n := len(topics); n > 0 && topics[n-1].Name == topic {
			topics[n-1].Partitions = append(topics[n-1].Partitions, p)
			continue
		}
		topics = append(topics, coord.CommitTopic{Name: topic, ID: topicID(topic, int(a.num("life", 1))), Partitions: []coord.CommitPartition{p}})
	}
	return topics
}

func (a *args) code(name string) wire.ErrorCode {
	for c := wire.ErrorCode(1); c.Known(); c++ {
		if c.String() == name {
			return c
		}
	}
	a.t.Fatalf("%s: %s is no error code", a.d.Pos, name)
	return 0
}

// topics reads all=(a:3,b:1), and b again in another life as b:1:2.
func (a *args) topics() []coord.Topic {
	var topics []coord.Topic
	for _, s := range a.list("all") {
		parts := append(strings.Split(s, ":"), "1")
		partitions, _ := strconv.Atoi(parts[1])
		life, _ := strconv.Atoi(parts[2])
		topics = append(topics, coord.Topic{Name: parts[0], ID: topicID(parts[0], life), Partitions: int32(partitions)})
	}
	return topics
}

func (a *args) owned() []coord.TopicPartitions {
	owned := []coord.TopicPartitions{}
	for _, s := range a.list("owned") {
		topic, number := a.partition(s)
		if n := len(owned); n > 0 && owned[n-1].Topic == topicID(topic, 1) {
			owned[n-1].Partitions = append(owned[n-1].Partitions, number)
			continue
		}
		owned = append(owned, coord.TopicPartitions{Topic: topicID(topic, 1), Partitions: []int32{number}})
	}
	return owned
}

func (a *args) config(c coord.Config) coord.Config {
	c.InitialRebalanceDelay = int32(a.num("initial-delay", int64(c.InitialRebalanceDelay)))
	c.OffsetsRetention = 60_000 * a.num("retention-min", c.OffsetsRetention/60_000)
	c.JumpsRememberedMillis = 60_000 * a.num("jumps-min", c.JumpsRememberedMillis/60_000)
	c.ConsumerSizeMax = int32(a.num("consumer-max", int64(c.ConsumerSizeMax)))
	c.MigrationUp = a.num("up", 1) == 1
	c.MigrationDown = a.num("down", 1) == 1
	return c
}

func (a *args) allUsed() {
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.t.Fatalf("%s: %s does not know %s", a.d.Pos, a.d.Cmd, arg)
		}
	}
}

// subscription is a ConsumerProtocolSubscription of version 1.
func subscription(topics, owned []string) []byte {
	b := []byte{0, 1}
	b = append(b, 0, 0, 0, byte(len(topics)))
	for _, t := range topics {
		b = append(b, 0, byte(len(t)))
		b = append(b, t...)
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff) // no user data
	b = append(b, 0, 0, 0, byte(len(owned)))
	for _, o := range owned {
		topic, number, _ := strings.Cut(o, "-")
		b = append(b, 0, byte(len(topic)))
		b = append(b, topic...)
		b = append(b, 0, 0, 0, 1, 0, 0, 0, number[0]-'0')
	}
	return b
}
