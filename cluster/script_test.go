package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestConversations runs the scripts in testdata. After -rewrite, commit a transcript only when you understand every changed line.
func TestConversations(t *testing.T) {
	datadriven.Walk(t, "testdata/conversations", func(t *testing.T, path string) {
		t.Helper()
		cryptotest.SetGlobalRandom(t, 1)
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			t.Helper()
			s.b.Reset()
			s.td = td
			verb, ok := verbs[td.Cmd]
			if !ok {
				td.Fatalf(t, "no verb %s", td.Cmd)
			}
			verb(s)
			if s.b.Len() == 0 {
				return "ok\n"
			}
			return s.b.String()
		})
	})
}

// script is one conversation in progress.
type script struct {
	t      *testing.T
	td     *datadriven.TestData
	w      *world
	b      strings.Builder
	nextID byte
	kept   []ISRChange // of the last change-isr
}

var verbs = map[string]func(*script){
	"cluster":           (*script).cluster,
	"start":             (*script).start,
	"stop":              (*script).stop,
	"cut":               (*script).cut,
	"heal":              (*script).heal,
	"ticks":             (*script).ticks,
	"await":             (*script).await,
	"join":              (*script).join,
	"register":          (*script).register,
	"heartbeat":         (*script).heartbeat,
	"create-topics":     (*script).createTopics,
	"delete-topics":     (*script).deleteTopics,
	"create-partitions": (*script).createPartitions,
	"alter-configs":     (*script).alterConfigs,
	"incremental":       (*script).incremental,
	"allocate":          (*script).allocate,
	"change-isr":        (*script).changeISR,
	"verified":          (*script).verified,
	"mark-replicas":     (*script).markReplicas,
	"elect-leaders":     (*script).electLeaders,
	"reassign":          (*script).reassign,
	"unregister":        (*script).unregister,
	"gossip":            (*script).gossip,
	"link-down":         (*script).linkDown,
	"beat":              (*script).beat,
	"update-features":   (*script).updateFeatures,
	"describe-quorum":   (*script).describeQuorum,
	"image":             (*script).image,
	"same":              (*script).same,
	"hold-disk":         (*script).holdDisk,
	"fail-disk":         (*script).failDisk,
	"letter":            (*script).letter,
}

// number reads an argument with a default.
func (s *script) number(key string, def int) int {
	n := def
	s.td.MaybeScanArgs(s.t, key, &n)
	return n
}

func (s *script) text(key, def string) string {
	v := def
	s.td.MaybeScanArgs(s.t, key, &v)
	return v
}

// list reads an argument of several values, (a, b), as "a,b".
func (s *script) list(key string) string {
	for _, arg := range s.td.CmdArgs {
		if arg.Key == key {
			return strings.Join(arg.Vals, ",")
		}
	}
	return ""
}

// target is the node a command goes to: the controller, or node=N.
func (s *script) target() *member {
	if n := s.number("node", 0); n > 0 {
		return s.w.node(n)
	}
	return s.w.await()
}

// cluster makes a cluster: voters=3 key=value lines are the brokers' static configs.
func (s *script) cluster() {
	var static []config.Given
	for line := range strings.Lines(s.td.Input) {
		g, err := config.FromFlag(strings.TrimSpace(line))
		if err != nil {
			s.t.Fatal(err)
		}
		static = append(static, g)
	}
	set, _, err := config.Static(static)
	if err != nil {
		s.t.Fatal(err)
	}
	s.w = newWorld(s.t, s.number("voters", 1), Options{
		Static: set, TopicsMax: s.number("topics-max", 0), PartitionsMax: s.number("partitions-max", 0),
		SnapshotBytes: int64(s.number("snapshot-bytes", 0)), KeepBytes: int64(s.number("keep-bytes", 0)),
		UncommittedBytes: int64(s.number("uncommitted-bytes", 0)),
	}, nil)
	s.w.trace = func(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }
	for _, n := range s.w.nodes {
		n.start()
	}
	s.w.settle()
}

func (s *script) start() {
	if s.td.HasArg("all") {
		for _, n := range s.w.nodes {
			if n.c == nil {
				n.start()
			}
		}
	} else {
		s.w.node(s.number("node", 1)).start()
	}
	s.w.settle()
}

func (s *script) stop() {
	if s.td.HasArg("controller") {
		s.w.await().stop(s.td.HasArg("crash"))
		return
	}
	s.w.node(s.number("node", 1)).stop(s.td.HasArg("crash"))
}

// cut loses letters from and to a node: node=N, or the controller.
func (s *script) cut() {
	n := s.target().number
	for _, o := range s.w.nodes {
		s.w.cut[[2]int{n, o.number}], s.w.cut[[2]int{o.number, n}] = true, true
	}
}

func (s *script) heal() { clear(s.w.cut) }

func (s *script) ticks() { s.w.ticks(s.number("n", 1)) }

// await waits for a controller and does not say which node it is: elections are random.
func (s *script) await() {
	old := s.w.trace
	s.w.trace = func(string, ...any) {}
	s.w.await()
	s.w.trace = old
	s.b.WriteString("somebody is the controller\n")
}

func (s *script) join() {
	s.w.join(s.number("broker", 1), byte(s.number("incarnation", 1)), s.text("rack", ""))
}

func (s *script) register() {
	cmd := registration(s.number("broker", 1), byte(s.number("incarnation", 1)), s.text("rack", ""))
	cmd.ClusterID = ident.ClusterID(s.text("cluster", "c1"))
	cmd.CleanEpoch = ident.BrokerEpoch(s.number("clean", 0))
	if d := s.number("directory", 0); d > 0 {
		cmd.Directories = []ident.DirectoryID{{0: byte(d)}}
	}
	cmd.hold(s.target().c.Image(), s.replicaRefs(s.list("lost")), s.replicaRefs(s.list("unverified")))
	if i := s.number("run", 0); i > 0 { // the directory is as that run left it
		cmd.Runs = []Incarnation{{byte(i), byte(cmd.Broker)}}
	}
	if s.td.HasArg("no-endpoints") {
		cmd.Endpoints = nil
	}
	if s.td.HasArg("no-features") {
		cmd.Features = nil
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// heartbeat: broker=N epoch=E, fence, shutdown, behind (its image is old).
func (s *script) heartbeat() {
	n := s.target()
	cmd := &Heartbeat{
		Broker: ident.BrokerID(s.number("broker", 1)), Epoch: ident.BrokerEpoch(s.number("epoch", -1)), Applied: n.c.Image().Index(), Arrived: s.w.now.Mono,
		WantFence: s.td.HasArg("fence"), WantShutdown: s.td.HasArg("shutdown"),
	}
	if b, ok := n.c.Image().Broker(cmd.Broker); ok && cmd.Epoch == -1 {
		cmd.Epoch = b.Epoch
	}
	if s.td.HasArg("behind") {
		cmd.Applied = 1
	}
	s.w.ask(n, &cmd.Ask, cmd)
}

// named splits a line into a name and key=value pairs.
func named(line string) (string, map[string]string) {
	words := strings.Fields(line)
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	name := words[0]
	if name == `""` {
		name = ""
	}
	return name, args
}

func atoi(s string, def int) int {
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func brokers(s string) []ident.BrokerID {
	var out []ident.BrokerID
	for w := range strings.SplitSeq(s, ",") {
		if w != "" {
			out = append(out, ident.BrokerID(atoi(w, 0)))
		}
	}
	return out
}

// createTopics: one topic a line, "name partitions=3 factor=1 id=9 assign=0:1,2/1:2,1 config.retention.ms=5".
func (s *script) createTopics() {
	cmd := &CreateTopics{ValidateOnly: s.td.HasArg("validate"), Entropy: uint64(s.number("entropy", 0))}
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		s.nextID++
		t := NewTopic{Name: name, ID: ident.TopicID{0: s.nextID}, Partitions: int32(atoi(args["partitions"], -1)), ReplicationFactor: int16(atoi(args["factor"], -1))}
		if id, ok := args["id"]; ok {
			t.ID = ident.TopicID{0: byte(atoi(id, 0))}
		}
		if a, ok := args["assign"]; ok {
			for part := range strings.SplitSeq(a, "/") {
				n, list, _ := strings.Cut(part, ":")
				t.Assignment = append(t.Assignment, Assignment{Partition: int32(atoi(n, 0)), Brokers: brokers(list)})
			}
		}
		t.Configs = configValues(line)
		cmd.Topics = append(cmd.Topics, t)
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// configValues reads config.NAME=VALUE and config.NAME (null) words in their order.
func configValues(line string) []ConfigValue {
	var out []ConfigValue
	for w := range strings.FieldsSeq(line) {
		rest, ok := strings.CutPrefix(w, "config.")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(rest, "=")
		v := ConfigValue{Name: name}
		if given {
			v.Value = &value
		}
		out = append(out, v)
	}
	return out
}

func (s *script) deleteTopics() {
	cmd := &DeleteTopics{}
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		ref := TopicRef{Name: name}
		if id, ok := args["id"]; ok {
			ref.ID = ident.TopicID{0: byte(atoi(id, 0))}
		}
		cmd.Topics = append(cmd.Topics, ref)
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// createPartitions: "name count=5 assign=1,2/2,1".
func (s *script) createPartitions() {
	cmd := &CreatePartitions{ValidateOnly: s.td.HasArg("validate"), Entropy: uint64(s.number("entropy", 0))}
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		more := MorePartitions{Name: name, Count: int32(atoi(args["count"], 0))}
		if a, ok := args["assign"]; ok {
			for part := range strings.SplitSeq(a, "/") {
				more.Assignment = append(more.Assignment, brokers(part))
			}
		}
		cmd.Topics = append(cmd.Topics, more)
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}
