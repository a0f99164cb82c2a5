package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Promise says what a seed's faults may do to what was acknowledged.
type Promise uint8

const (
	// PromiseSynced: every topic has write.caching=false and keeps it. Nothing acknowledged with acks=all is ever lost.
	PromiseSynced Promise = iota
	// PromiseCached: topics have write.caching=true, and only the process dies. Nothing acknowledged is lost.
	PromiseCached
	// PromiseMixed: topics have either mode and change it, and anything may happen. What was acknowledged in the synced
	// mode, and what lies below it, is never lost; the rest is lost by power cuts and broken disks only.
	PromiseMixed
)

var promiseWords = []string{"synced", "cached", "mixed"}

// String is the word of the promise in plans.
func (p Promise) String() string { return promiseWords[p] }

// Plan is what a seed expands to: everything that is decided before a run begins. Each client and each fault has a
// number, and draws from a stream of that number only, so that taking one out changes nothing else.
type Plan struct {
	Seed     uint64
	Promise  Promise
	Brokers  int           // how many there are; 0 and 1: one, which is alone
	Voters   int           // how many of several found the cluster; the others join it
	Early    bool          // several brokers are at work, and have faults, before their cluster is founded
	Duration time.Duration // of the workload, before everything is healed
	Settings config.Set    // of the broker
	Segment  int           // bytes of a segment, at most
	Zstd     bool          // somebody may use zstd, which old versions of requests cannot carry
	Topics   []TopicPlan
	Clients  []ClientPlan
	Faults   []FaultPlan
	Weather  Weather
	Disk     DiskPlan
	Last     string   // how the last restart ends the process: kill, stop or power; "": the seed says
	Expect   []Expect // of a story
}

// Expect is what has to be seen in a run, so that a story is known to have told what it is about, or must not be seen.
type Expect struct {
	Reached string // a counter of the run; or
	Logged  string // a part of a log line of the broker
	Times   int    // at least so often; 0: once
	Never   bool   // not at all
}

// TopicPlan is a topic that the first administrator creates.
type TopicPlan struct {
	Name       string
	Partitions int32
	Factor     int16 // of replication; 0: 1
	Configs    config.Set
}

// ClientKind says what a client does.
type ClientKind uint8

// The kinds of clients.
const (
	Idempotent ClientKind = iota // a producer with sequences, several requests in flight
	Plain                        // a producer without, with acks of its own
	Consumer                     // reads everything from the start, again and again
	Admin                        // creates, deletes, alters
	Curious                      // asks everything that can be asked
	Hostile                      // sends what no client should
	Told                         // an administrator who does what the plan's Ask says, and nothing else
	Committer                    // commits offsets of a group without members, and fetches them
	Classic                      // a member of a group that speaks JoinGroup and SyncGroup, until a fault has it move
	Modern                       // likewise, ConsumerGroupHeartbeat
	Operator                     // describes and lists groups, fetches and deletes offsets, deletes groups
	Keyed                        // writes keys to a compacted topic, and reads them
	Governor                     // changes who votes in the metadata quorum
)

var clientWords = []string{
	"idempotent", "plain", "consumer", "admin", "curious", "hostile", "told", "committer", "classic", "modern", "operator", "keyed", "governor",
}

// String is the word of the kind in plans.
func (k ClientKind) String() string { return clientWords[k] }

// ClientPlan is one client.
type ClientPlan struct {
	Number   int
	Kind     ClientKind
	Acks     int16         // of a producer
	InFlight int           // requests that a producer has under way
	Retry    bool          // a plain producer sends again what failed
	Pause    time.Duration // between what it does, on average
	Size     int           // bytes of a batch, at most
	Codec    int8
	Sessions bool // a consumer uses fetch sessions
	Near     bool // a consumer reads what its broker has a replica of, whoever leads that
	Patience time.Duration
	First    int32         // an idempotent producer's first sequence
	Ahead    time.Duration // of a producer's timestamps

	Group     string        // of a member
	Instance  string        // of a static one
	Topics    string        // that it reads, with commas
	Regex     string        // that it subscribes to while it speaks the protocol of KIP-848; "": to Topics
	Gradual   bool          // a classic member gives up in a rebalance only what somebody else is to read (KIP-429)
	Adjusts   bool          // an operator changes the configs of groups
	Session   time.Duration // timeouts of a member; the session of a modern one is the broker's
	Rebalance time.Duration
}

// DiskPlan says what the disk is like when nothing is broken.
type DiskPlan struct {
	Writeback  int  // percent of operations that the kernel accompanies by writing on its own account
	WholeSync  bool // one sync of the whole file system is in order
	SyncMax    time.Duration
	Cold       int           // percent of regions that have to be read from the disk first
	Checkpoint time.Duration // how often the broker writes its durable marks; 0: as usual
	Later      time.Duration // what a broker leaves to its background is done so much later, at most; 0: at once
	Late       time.Duration // actors that wait for no disk get their turn so much late, at most
}

// Stream is a source of choices for one purpose of a seed.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash does not fail
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// one picks one of the choices.
func one[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// between draws a duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

// chance is true in so many of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// NewPlan expands a seed.
func NewPlan(seed uint64) *Plan {
	r := stream(seed, "plan")
	p := &Plan{Seed: seed, Promise: one(r, PromiseSynced, PromiseSynced, PromiseCached, PromiseMixed)}
	p.Duration = between(r, time.Second, 5*time.Second)
	if chance(r, 3) {
		p.Duration += 70 * time.Second // the checkpoints are written once a minute
	}
	p.planBroker(r)
	p.planTopics(r)
	p.planClients(r)
	p.planWeather(r)
	p.planFaults(stream(seed, "plan/faults"))
	p.planAimed(stream(seed, "plan/aimed"))
	p.planRare(stream(seed, "plan/rare"))
	p.planMembers(stream(seed, "plan/members"))
	p.planKeyed(stream(seed, "plan/keyed"))
	if r := stream(seed, "plan/later"); chance(r, 40) {
		p.Disk.Later = one(r, time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)
	}
	return p
}

// planRare draws what only some worlds have. It draws from a stream of its own, so that the others stay what they were.
func (p *Plan) planRare(r *rand.Rand) {
	for i := range p.Clients {
		c := &p.Clients[i]
		if c.Kind == Idempotent && chance(r, 12) {
			c.First = math.MaxInt32 - int32(r.IntN(60)) // the sequences wrap soon
		}
		if (c.Kind == Idempotent || c.Kind == Plain) && chance(r, 8) {
			c.Ahead = one(r, 50*time.Minute, -50*time.Minute, -1000*time.Hour) // the default bound is an hour ahead
		}
	}
	if p.Promise != PromiseCached && chance(r, 10) {
		// What a restart took from the page cache is lost before it was synced.
		at := between(r, p.Duration/4, p.Duration*3/4)
		p.Faults = append(p.Faults,
			FaultPlan{Number: len(p.Faults), Kind: Kill, At: at, Before: "sync *.log", N: 1},
			FaultPlan{Number: len(p.Faults) + 1, Kind: Power, At: at, Before: "sync *.log", N: 2 + r.IntN(3), Seed: r.Uint64()})
	}
	if r := stream(p.Seed, "plan/groups"); chance(r, 15) {
		p.Settings = p.Settings.With("offsets.topic.num.partitions", one(r, "1", "2")).With("offsets.topic.segment.bytes", one(r, "1000", "1048576"))
		for range 1 + r.IntN(2) {
			p.Clients = append(p.Clients, ClientPlan{
				Number: len(p.Clients), Kind: Committer, Pause: one(r, 15*time.Millisecond, 100*time.Millisecond), Patience: between(r, 500*time.Millisecond, 4*time.Second),
			})
		}
	}
	for range r.IntN(3) {
		if chance(r, 30) {
			p.Faults = append(p.Faults, FaultPlan{Number: len(p.Faults), Kind: TruncateAnswer, At: between(r, 0, p.Duration*9/10), N: 1 + r.IntN(60), Seed: r.Uint64()})
		}
	}
}

func (p *Plan) planBroker(r *rand.Rand) {
	set := func(name, value string) { p.Settings = p.Settings.With(name, value) }
	set("log.dir", dataDir)
	set("listeners", "PLAINTEXT://broker.example:9092")
	set("metrics.listen", "")
	p.Segment = one(r, 700, 1500, 4000, 16000, 60000)
	p.Zstd = chance(r, 40)
	set("log.segment.bytes", strconv.Itoa(p.Segment))
	set("log.index.interval.bytes", one(r, "0", "200", "4096"))
	set("log.index.size.max.bytes", one(r, "48", "480", "10485760"))
	set("log.retention.check.interval.ms", one(r, "100", "700", "3000"))
	set("log.segment.delete.delay.ms", one(r, "0", "50", "60000"))
	set("validation.depth", one(r, "header", "default", "full"))
	set("broker.heartbeat.interval.ms", one(r, "100", "500"))
	set("broker.session.timeout.ms", "6000")
	if chance(r, 30) {
		set("queued.max.request.bytes", "1") // the least that works
	}
	if chance(r, 20) {
		set("connections.max.idle.ms", "1500")
	}
	if chance(r, 40) {
		set("max.incremental.fetch.session.cache.slots", one(r, "0", "1", "2"))
	}
	if chance(r, 40) {
		set("metadata.log.max.record.bytes.between.snapshots", one(r, "1", "400", "3000"))
	}
	if chance(r, 20) {
		set("log.preallocate", "true")
	}
	p.Disk = DiskPlan{
		Writeback: one(r, 0, 0, 3, 20), WholeSync: chance(r, 30), SyncMax: one(r, 0, 200*time.Microsecond, 3*time.Millisecond, 20*time.Millisecond), Cold: one(r, 0, 0, 10, 60),
	}
}

func (p *Plan) planTopics(r *rand.Rand) {
	for i := range 1 + r.IntN(3) {
		t := TopicPlan{Name: fmt.Sprintf("t%d", i), Partitions: 1 + int32(r.IntN(3))}
		t.Configs = p.topicConfigs(r)
		p.Topics = append(p.Topics, t)
	}
}

// topicConfigs draws the configs of a topic.
func (p *Plan) topicConfigs(r *rand.Rand) config.Set {
	var c config.Set
	set := func(name string, values ...string) { c = c.With(name, one(r, values...)) }
	caching := p.Promise == PromiseCached || p.Promise == PromiseMixed && chance(r, 50)
	set("write.caching", fmt.Sprint(caching))
	if chance(r, 25) {
		set("compression.type", "producer", "uncompressed", "gzip", "snappy", "lz4")
		if p.Zstd {
			set("compression.type", "zstd", "uncompressed")
		}
	}
	if chance(r, 20) {
		set("message.timestamp.type", "CreateTime", "LogAppendTime")
	}
	if chance(r, 25) {
		set("retention.ms", "1", "500", "2000")
	}
	if chance(r, 15) {
		set("retention.bytes", "0", "3000", "20000")
	}
	if chance(r, 25) {
		set("segment.ms", "20", "300")
	}
	if chance(r, 20) {
		set("flush.messages", "1", "7")
	}
	if chance(r, 20) {
		set("flush.ms", "0", "5", "200")
	}
	return c
}

func (p *Plan) planClients(r *rand.Rand) {
	add := func(kind ClientKind) {
		c := ClientPlan{Number: len(p.Clients), Kind: kind, Acks: -1, InFlight: 1 + r.IntN(5), Retry: chance(r, 60), Size: one(r, 120, 600, 3000)}
		c.Pause = one(r, 15*time.Millisecond, 50*time.Millisecond, 150*time.Millisecond)
		c.Size = min(c.Size, p.Segment/4) // a batch fits into a segment
		c.Codec = int8(one(r, 0, 0, 0, 1, 2, 3, 4))
		if c.Codec == 4 && !p.Zstd {
			c.Codec = 0
		}
		c.Sessions = chance(r, 70)
		c.Patience = between(r, 500*time.Millisecond, 4*time.Second)
		if kind == Plain {
			c.Acks = one[int16](r, -1, -1, 0, 1)
		}
		if kind == Admin || kind == Curious || kind == Hostile {
			c.Pause *= 5
		}
		p.Clients = append(p.Clients, c)
	}
	add(Admin) // the first creates the topics of the plan
	add(Idempotent)
	for range r.IntN(3) {
		add(Idempotent)
	}
	for range r.IntN(3) {
		add(Plain)
	}
	for range 1 + r.IntN(3) {
		add(Consumer)
	}
	for _, kind := range []ClientKind{Admin, Curious, Hostile} {
		if chance(r, 40) {
			add(kind)
		}
	}
}

func (p *Plan) planWeather(r *rand.Rand) {
	p.Weather = FairWeather
	p.Weather.DelayMax = one(r, 100*time.Microsecond, 2*time.Millisecond, 30*time.Millisecond)
	p.Weather.SegmentMax = one(r, 1460, 1460, 16<<10)
	if chance(r, 10) {
		p.Weather.SegmentMax = one(r, 17, 100)
	}
	p.Weather.BufferMax = one(r, 400, 4<<10, 256<<10)
}
