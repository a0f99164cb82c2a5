package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// namesMax is how many names of topics there are: few, so that names come again.
const namesMax = 5

// admin creates, deletes, enlarges and alters topics, one request at a time. The first one of a plan creates its topics.
type admin struct {
	*client
	wanted    []TopicPlan // still to be created
	busy      bool
	finishing bool
}

func newAdmin(c *client) *admin {
	a := &admin{client: c}
	if c.plan.Number == 0 {
		a.wanted = append(a.wanted, c.run.plan.Topics...)
	}
	return a
}

func (a *admin) begin() {}

func (a *admin) connected() {
	a.busy = false
	connection := a.connection
	var again func()
	again = func() {
		if a.end == nil || a.connection != connection {
			return
		}
		if !a.busy {
			a.act()
		}
		a.after(a.pause(), again)
	}
	again()
}

func (a *admin) lost()   { a.busy = false }
func (a *admin) finish() { a.finishing = true }

func (a *admin) done() bool { return !a.busy && len(a.wanted) == 0 }

// request sends one and remembers that it is under way.
func (a *admin) request(req kmsg.Request, answer func(kmsg.Response)) {
	a.busy = true
	a.ask(req, func(resp kmsg.Response, err error) {
		a.busy = false
		if err == nil {
			answer(resp)
		}
	})
}

func (a *admin) act() {
	if len(a.wanted) > 0 {
		a.create(a.wanted[0])
		return
	}
	if a.finishing || a.plan.Kind == Told {
		return
	}
	t := a.any()
	switch n := a.rand.IntN(100); {
	case n < 20:
		p := TopicPlan{Name: fmt.Sprintf("t%d", a.rand.IntN(namesMax)), Partitions: 1 + int32(a.rand.IntN(3)), Configs: a.run.plan.topicConfigs(a.rand)}
		if a.run.ensemble != nil {
			a.run.plan.replicate(a.rand, &p)
		}
		a.create(p)
	case t == nil:
	case n < 32:
		a.remove(t)
	case n < 45:
		a.enlarge(t)
	case n < 75:
		a.alter(t)
	case a.run.ensemble != nil && n < 88:
		a.alter(t)
	case a.run.ensemble != nil:
		a.move(t)
	default:
		a.deleteRecords(t)
	}
}

// told carries out what a story asks for: "create NAME PARTITIONS NAME=VALUE…", "delete NAME", "records NAME PARTITION
// OFFSET", "alter NAME NAME=VALUE", "move NAME PARTITION BROKER…".
func (a *admin) told(what string) {
	if a.end == nil {
		a.run.tell("%s is not connected and cannot %s", a.name, what)
		return
	}
	words := strings.Fields(what)
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			panic("sim: a story asks to " + what)
		}
		return n
	}
	if words[0] == "create" {
		p := TopicPlan{Name: words[1], Partitions: int32(number(words[2]))}
		for _, w := range words[3:] {
			name, value, _ := strings.Cut(w, "=")
			p.Configs = p.Configs.With(name, value)
		}
		a.create(p)
		return
	}
	for _, t := range a.run.ghost.all() {
		if t.name != words[1] || t.deleted != 0 {
			continue
		}
		switch words[0] {
		case "delete":
			a.remove(t)
		case "records":
			a.deleteUpTo(t, t.partition(int32(number(words[2]))), ident.Offset(number(words[3])))
		case "move":
			var to []int32
			for _, w := range words[3:] {
				to = append(to, int32(number(w)))
			}
			a.moveTo(t, int32(number(words[2])), to)
		case "alter":
			name, value, _ := strings.Cut(words[2], "=")
			a.alterTo(t, name, value, true)
		default:
			panic("sim: a story asks to " + what)
		}
		return
	}
	a.run.tell("%s knows no topic and cannot %s", a.name, what)
}

// any picks a topic that nobody has asked to delete.
func (a *admin) any() *ghostTopic {
	var live []*ghostTopic
	for _, t := range a.run.ghost.all() {
		if t.stable() {
			live = append(live, t)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return one(a.rand, live...)
}

// passing are codes of requests that met a broker in trouble.
var passing = []wire.ErrorCode{
	wire.RequestTimedOut, wire.NotController, wire.KafkaStorageError, wire.CoordinatorLoadInProgress, wire.UnknownTopicOrPartition, wire.UnknownTopicID, wire.NotLeaderOrFollower,
}

func (a *admin) create(p TopicPlan) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 2000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = p.Name, p.Partitions, max(p.Factor, 1)
	for _, e := range p.Configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = e.Name, new(e.Value)
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	g := a.run.ghost
	before := g.name(p.Name).cachedSent
	for _, e := range p.Configs {
		g.asks(p.Name, e)
	}
	a.request(req, func(resp kmsg.Response) {
		for _, e := range p.Configs {
			g.answered(p.Name, e)
		}
		for _, r := range resp.(*kmsg.CreateTopicsResponse).Topics {
			switch code := wire.ErrorCode(r.ErrorCode); code {
			case wire.NoError:
				a.created(p, ident.TopicID(r.TopicID), before)
				a.unwant(p.Name)
			case wire.TopicAlreadyExists:
				a.unwant(p.Name)
			default:
				a.run.allow(a.name, "CreateTopics", r.ErrorCode, append(passing, wire.InvalidReplicationFactor)...)
			}
		}
	})
}

func (a *admin) unwant(name string) {
	if len(a.wanted) > 0 && a.wanted[0].Name == name {
		a.wanted = a.wanted[1:]
	}
}

// created notes what was acknowledged. Old versions do not tell the id: then the topic is known when somebody sees it.
func (a *admin) created(p TopicPlan, id ident.TopicID, cachedSent int) {
	a.run.counted("topic created")
	if id == (ident.TopicID{}) || apart(p.Name) {
		return
	}
	g := a.run.ghost
	if t := g.topics[id]; t != nil && t.known {
		a.run.fail("topic ids are unique", "topic %s was created as %s, which was %s before", p.Name, id, t.name)
		return
	}
	t := g.topic(p.Name, id)
	t.known = true
	t.promised, t.promisedAt = max(t.promised, int(p.Partitions)), a.now()
	for n := range p.Partitions {
		t.partition(n)
	}
	if caching, _ := p.Configs.Get("write.caching"); caching == "false" && g.name(p.Name).cachedSent == cachedSent {
		t.everCached = false
		g.synced(t, cachedSent)
	}
}

func (a *admin) remove(t *ghostTopic) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 2000
	rt := kmsg.NewDeleteTopicsRequestTopic()
	if a.versions[req.Key()] >= 6 && a.plan.Kind != Told && chance(a.rand, 50) {
		rt.TopicID = t.id
	} else {
		rt.Topic = new(t.name)
	}
	req.TopicNames = []string{t.name}
	req.Topics = append(req.Topics, rt)
	for _, other := range a.run.ghost.all() {
		if other.name == t.name && other.stable() {
			other.deleteSent = a.now() // by name it may hit any of them
		}
	}
	byName := a.run.ghost.name(t.name)
	if rt.Topic != nil {
		byName.deleteOpen++
	}
	a.request(req, func(resp kmsg.Response) {
		if rt.Topic != nil {
			byName.deleteOpen--
		}
		for _, r := range resp.(*kmsg.DeleteTopicsResponse).Topics {
			if wire.ErrorCode(r.ErrorCode) != wire.NoError {
				a.run.allow(a.name, "DeleteTopics", r.ErrorCode, passing...)
				continue
			}
			a.run.counted("topic deleted")
			if rt.Topic == nil || ident.TopicID(r.TopicID) == t.id {
				t.deleted = a.now()
			}
		}
	})
}

func (a *admin) enlarge(t *ghostTopic) {
	count := len(t.partitions) + a.rand.IntN(2)
	if count > 6 || count == 0 {
		return
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 2000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = t.name, int32(count)
	req.Topics = append(req.Topics, rt)
	a.request(req, func(resp kmsg.Response) {
		for _, r := range resp.(*kmsg.CreatePartitionsResponse).Topics {
			switch code := wire.ErrorCode(r.ErrorCode); {
			case code != wire.NoError:
				a.run.allow(a.name, "CreatePartitions", r.ErrorCode, append(passing, wire.InvalidPartitions, wire.InvalidReplicationFactor)...)
			case t.stable():
				t.partition(int32(count) - 1)
				t.promised, t.promisedAt = max(t.promised, count), a.now()
			}
		}
	})
}

// alter changes one setting, or all at once as old clients do.
func (a *admin) alter(t *ghostTopic) {
	name, value := a.setting()
	a.alterTo(t, name, value, chance(a.rand, 80))
}

func (a *admin) alterTo(t *ghostTopic, name, value string, one bool) {
	settings := config.Set{{Name: name, Value: value}}
	var req kmsg.Request
	if one {
		ir := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, t.name
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, new(value)
		r.Configs = append(r.Configs, c)
		ir.Resources = append(ir.Resources, r)
		req = ir
	} else {
		// What is left out returns to its default; the mode is said, so that it stays what the promise needs.
		ar := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, t.name
		settings = config.Set(nil).With("write.caching", fmt.Sprint(a.run.plan.Promise == PromiseCached)).With(name, value)
		for _, e := range settings {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name, c.Value = e.Name, new(e.Value)
			r.Configs = append(r.Configs, c)
		}
		ar.Resources = append(ar.Resources, r)
		req = ar
	}
	g := a.run.ghost
	before := g.name(t.name).cachedSent
	for _, e := range settings {
		g.asks(t.name, e)
	}
	a.request(req, func(resp kmsg.Response) {
		for _, e := range settings {
			g.answered(t.name, e)
		}
		if code := alterCode(resp); code != 0 {
			a.run.allow(a.name, "alter configs", code, passing...)
			return
		}
		a.run.counted("altered " + name)
		if mode, said := settings.Get("write.caching"); said && mode == "false" && t.stable() {
			g.synced(t, before)
		}
	})
}

// alterCode is the result for the one resource of a request.
func alterCode(resp kmsg.Response) int16 {
	switch r := resp.(type) {
	case *kmsg.IncrementalAlterConfigsResponse:
		if len(r.Resources) == 1 {
			return r.Resources[0].ErrorCode
		}
	case *kmsg.AlterConfigsResponse:
		if len(r.Resources) == 1 {
			return r.Resources[0].ErrorCode
		}
	}
	return int16(wire.UnknownServerError)
}

// setting draws a setting of a topic.
func (a *admin) setting() (name, value string) {
	switch a.rand.IntN(7) {
	case 0:
		return "segment.ms", one(a.rand, "5", "100", "604800000")
	case 1:
		return "retention.ms", one(a.rand, "1", "1000", "-1")
	case 2:
		return "flush.messages", one(a.rand, "1", "5", "9223372036854775807")
	case 3:
		return "index.interval.bytes", one(a.rand, "0", "300", "4096")
	case 4:
		if a.run.plan.Zstd {
			return "compression.type", one(a.rand, "producer", "zstd")
		}
		return "compression.type", one(a.rand, "producer", "gzip", "uncompressed")
	case 5:
		return "flush.ms", one(a.rand, "0", "10", "9223372036854775807")
	}
	if a.run.plan.Promise == PromiseMixed {
		return "write.caching", one(a.rand, "true", "false")
	}
	return "file.delete.delay.ms", one(a.rand, "0", "100")
}

func (a *admin) deleteRecords(t *ghostTopic) {
	if len(t.partitions) == 0 {
		return
	}
	p := one(a.rand, t.partitions...)
	offset := ident.Offset(-1)
	if p.high > 0 && chance(a.rand, 70) {
		offset = ident.Offset(a.rand.Int64N(int64(p.high) + 1))
	}
	a.deleteUpTo(t, p, offset)
}

func (a *admin) deleteUpTo(t *ghostTopic, p *ghostPartition, offset ident.Offset) {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = int32(between(a.rand, 100*time.Millisecond, 2*time.Second) / time.Millisecond)
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = t.name
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = p.number, int64(offset)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	for _, other := range a.run.ghost.all() {
		if other.name == t.name && int(p.number) < len(other.partitions) {
			q := other.partitions[p.number]
			q.startMax = max(q.startMax, offset)
			if offset < 0 {
				q.startMax = anywhere
			}
		}
	}
	a.request(req, func(resp kmsg.Response) {
		for _, rt := range resp.(*kmsg.DeleteRecordsResponse).Topics {
			for _, rp := range rt.Partitions {
				switch code := wire.ErrorCode(rp.ErrorCode); {
				case code != wire.NoError:
					a.run.allow(a.name, "DeleteRecords", rp.ErrorCode, append(passing, wire.OffsetOutOfRange, wire.LeaderNotAvailable)...)
				case t.stable():
					a.run.counted("records deleted")
					low := ident.Offset(rp.LowWatermark)
					if offset >= 0 && low < offset {
						a.run.fail("what is to be deleted is deleted", "%s-%d: low watermark %d after deleting to %d", t.name, p.number, low, offset)
					}
					if low > p.start {
						p.start, p.startAt = low, a.now()
					}
				}
			}
		}
	})
}
