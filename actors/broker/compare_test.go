package broker_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/record"
)

// checkup asks a broker about partition 0 of a topic.
func (r *running) checkup(topic string, order checkup.Order) checkup.Report {
	r.t.Helper()
	req := kmsg.NewPtrDescribeLogDirsRequest()
	rt := kmsg.NewDescribeLogDirsRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, rt)
	req.UnknownTags.Set(checkup.Tag, order.Encode())
	resp := ask[*kmsg.DescribeLogDirsResponse](r, req)
	for i := range resp.Dirs {
		for j := range resp.Dirs[i].Topics {
			for k := range resp.Dirs[i].Topics[j].Partitions {
				var report *checkup.Report
				resp.Dirs[i].Topics[j].Partitions[k].UnknownTags.Each(func(tag uint32, b []byte) {
					d, err := checkup.DecodeReport(b)
					if tag != checkup.Tag || err != nil {
						r.t.Fatalf("tag %d, %v: %s", tag, err, b)
					}
					report = &d
				})
				if report != nil {
					return *report
				}
			}
		}
	}
	r.t.Fatalf("no report of %s: %+v", topic, resp)
	return checkup.Report{}
}

// verified has a replica checked and waits until that is over.
func (r *running) verified(topic string) checkup.Report {
	r.t.Helper()
	asked := r.checkup(topic, checkup.Order{Do: checkup.Verify}).Asked
	if asked == 0 {
		r.t.Fatal("no check was promised")
	}
	var report checkup.Report
	awaitFact(r.t, "the check", func() bool {
		report = r.checkup(topic, checkup.Order{Do: checkup.Look})
		return report.Done >= asked
	})
	return report
}

// falsify changes a text in a file of batches, once, and gives the batch that has it the checksum that belongs to it.
func falsify(t *testing.T, name, old, fresh string) {
	t.Helper()
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		v, _, err := record.Split(all[at:])
		if err != nil {
			t.Fatalf("%q is not in %s: %v", old, name, err)
		}
		if i := strings.Index(string(v), old); i >= 0 {
			copy(v[i:], fresh)
			binary.BigEndian.PutUint32(v[17:], crc32.Checksum(v[21:], crc32.MakeTable(crc32.Castagnoli)))
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(v, int64(at)); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		at += len(v)
	}
}

// A record of a follower is another one, with a checksum that is right. Rounds of the scrub find it, nothing is changed, and an operator may have it replaced.
func TestAScrubFindsWhatDiffersThoughItsChecksumIsRight(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, patient, "log.scrub.interval.ms=300", "log.scrub.max.bytes.per.second=1000000000")
	s := c.steady("t")
	s.produce(40)
	c.whole("t")
	bad := (c.leader("t", 0) + 1) % 3
	at := c.running[bad]
	if r := at.checkup("t", checkup.Order{Do: checkup.Repair, Divergent: true}); r.Error != "" && r.Done > 0 || len(r.Damaged) > 0 {
		t.Fatalf("%+v", r)
	}
	name := filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log")
	falsify(t, name, "record 3 ", "rumour 3 ")
	forged, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := []checkup.Range{{From: 3, To: 4, Kind: "another record"}}
	awaitFact(t, "a round to find it", func() bool {
		return reflect.DeepEqual(at.checkup("t", checkup.Order{Do: checkup.Look}).Divergent, want)
	})
	awaitFact(t, "the metric", func() bool { return at.metric(`partition_divergent_ranges\{partition="0",topic="t"\}`) == 1 })
	for i, b := range c.running {
		r := b.verified("t")
		end := int64(s.n)
		switch {
		case !r.Whole || r.End != end || r.Checked < 40*100_000 || len(r.Damaged) > 0 || r.Mending != checkup.Sound:
			t.Errorf("broker %d: %+v", i+1, r)
		case r.State == "leader" && (r.Compared != 0 || r.Divergent != nil), r.State == "follower" && (r.Compared != end || r.NotCompared != ""):
			t.Errorf("broker %d: %+v", i+1, r)
		case !reflect.DeepEqual(r.Divergent, map[bool][]checkup.Range{true: want}[i == bad]):
			t.Errorf("broker %d: %+v", i+1, r)
		}
	}
	if now, err := os.ReadFile(name); err != nil || string(now) != string(forged) {
		t.Errorf("something was changed: %v", err)
	}
	if r := at.checkup("t", checkup.Order{Do: checkup.Repair}); len(r.Divergent) != 1 || len(r.Damaged) != 0 {
		t.Errorf("a repair of damage: %+v", r)
	}
	if r := at.checkup("t", checkup.Order{Do: checkup.Repair, Divergent: true}); r.Error != "" {
		t.Fatalf("%+v", r)
	}
	c.sound("t", bad, (bad+1)%3)
	if r := at.verified("t"); len(r.Divergent) != 0 || len(r.Damaged) != 0 || r.Compared != int64(s.n) {
		t.Errorf("after the repair: %+v", r)
	}
	s.read("t")
	c.equal("t", 1)
}

// What is damaged is no difference, and a lone replica says that nothing brings it back.
func TestAReportSaysWhatIsDamagedAndWhyItStays(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.createTopic("worn", 1, "segment.bytes", "1048576")
	c := r.raw()
	c.fill("worn", 0, 40, 100_000)
	flip(t, filepath.Join(r.dir, "worn-0", "00000000000000000000.log"), 250_000) // in the batch at offset 2
	got := r.verified("worn")
	if want := []checkup.Range{{From: 2, To: 3}}; !reflect.DeepEqual(got.Damaged, want) || !reflect.DeepEqual(got.Found, want) || got.Mending != checkup.Impossible || !strings.Contains(got.Why, "only replica") || got.Compared != 0 {
		t.Errorf("%+v", got)
	}
	if again := r.checkup("worn", checkup.Order{Do: checkup.Repair, Divergent: true}); again.Mending != checkup.Impossible {
		t.Errorf("%+v", again)
	}
	for i := range 3 {
		if n := r.verified("worn"); n.Done != got.Done+int64(i)+1 {
			t.Errorf("check %d is %d", i, n.Done)
		}
	}
	if fmt.Sprint(got.Start, got.End, got.High) != "0 40 40" {
		t.Errorf("%+v", got)
	}
}

// A follower has lost a batch of a closed segment, and no checksum tells: the batches around it are sound. It is told, and comes back when an operator says so, with
// all records around it as they were.
func TestARecordThatIsMissingComesBackFromTheLeader(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, patient, "log.scrub.max.bytes.per.second=1000000000")
	s := c.steady("t")
	s.produce(40)
	c.whole("t")
	bad := (c.leader("t", 0) + 1) % 3
	c.stop(bad)
	name := filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log")
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var left []byte
	for rest := all; len(rest) > 0; {
		v, behind, err := record.Split(rest)
		if err != nil {
			t.Fatal(err)
		}
		if v.BaseOffset() != 3 {
			left = append(left, v...)
		}
		rest = behind
	}
	if len(left) == len(all) {
		t.Fatal("there was no batch at offset 3")
	}
	if err := os.WriteFile(name, left, 0o600); err != nil {
		t.Fatal(err)
	}
	c.again(bad)
	c.serving(bad)
	c.whole("t")
	at := c.running[bad]
	r := at.verified("t")
	if want := []checkup.Range{{From: 3, To: 4, Kind: "missing here"}}; !reflect.DeepEqual(r.Divergent, want) || len(r.Damaged) != 0 || r.NotCompared != "" {
		t.Fatalf("%+v", r)
	}
	if r := at.checkup("t", checkup.Order{Do: checkup.Repair, Divergent: true}); r.Error != "" {
		t.Fatalf("%+v", r)
	}
	c.sound("t", bad, (bad+1)%3)
	if r := at.verified("t"); len(r.Divergent) != 0 || len(r.Damaged) != 0 || r.Compared != int64(s.n) {
		t.Errorf("after the repair: %+v", r)
	}
	s.read("t")
	c.equal("t", 1)
}
