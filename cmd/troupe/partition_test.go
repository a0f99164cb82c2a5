package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/record"
)

// patch changes a file in place, as a disk that rots would.
func patch(t *testing.T, name string, change func(all []byte) (at int, b []byte)) {
	t.Helper()
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at, b := change(all)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill writes records of 100 KB, one a batch: ten of them are a segment.
func (c *trio) fill(topic string, partition int32, n int) {
	c.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.clients[:]...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic(topic))
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	for i := range n {
		r := &kgo.Record{Partition: partition, Value: []byte(fmt.Sprint("record ", i, strings.Repeat(" ", 100_000)))}
		if err := client.ProduceSync(bounded(c.t, 30*time.Second), r).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestReplicasAreVerifiedAndRepaired(t *testing.T) {
	c := newTrio(t)
	c.launchAll("-X", "log.scrub.max.bytes.per.second=1000000000")
	first := c.alive[0]
	for _, topic := range [][]string{{"three", "--replication-factor", "3"}, {"one", "--replication-factor", "1"}} {
		if code, said := first.asks(t, new(any), append([]string{"topic", "create", "--partitions", "1", "--config", "segment.bytes=1048576"}, topic...)...); code != 0 {
			t.Fatal(said)
		}
		c.fill(topic[0], 0, 25)
	}
	ask := func(args ...string) (rows []replicaRow, code int, said string) {
		t.Helper()
		var out replicaRows
		code, said = first.asks(t, &out, append([]string{"partition"}, args...)...)
		return out.Replicas, code, said
	}
	all, code, said := ask("verify", "three", "one:0")
	if code != 0 || len(all) != 4 {
		t.Fatalf("all is sound: exit code %d, %+v, %s", code, all, said)
	}
	lone, follower := 0, int32(-1)
	for _, r := range all {
		if !r.Sound || r.End != 25 || r.Checked < 25*100_000 || r.State == "follower" && r.Compared != 25 {
			t.Errorf("%+v", r)
		}
		switch {
		case r.Topic == "one":
			lone = int(r.Broker) - 1
		case r.State == "follower":
			follower = r.Broker
		}
	}
	const segment = "00000000000000000000.log"
	file := func(broker int32, topic string) string {
		return filepath.Join(c.dirs[broker-1], topic+"-0", segment)
	}
	want, err := os.ReadFile(file(follower, "three"))
	if err != nil {
		t.Fatal(err)
	}

	// A bit turns on the disk of a follower: it is found, named, and comes back.
	turn := func(all []byte) (int, []byte) { return 250_000, []byte{all[250_000] ^ 4} } // in the batch at offset 2
	patch(t, file(follower, "three"), turn)
	on := fmt.Sprint(follower)
	bad := []checkup.Range{{From: 2, To: 3}}
	if rows, code, said := ask("verify", "three:0", "--broker", on); len(rows) != 1 || !reflect.DeepEqual(rows[0].Found, bad) || rows[0].Sound != (code == 0) {
		t.Errorf("a damaged follower: exit code %d, %+v, %s", code, rows, said)
	}
	if rows, code, said := ask("repair", "three:0"); code != 0 || len(rows) != 3 || len(rows[0].Damaged)+len(rows[1].Damaged)+len(rows[2].Damaged) != 0 {
		t.Errorf("a repair: exit code %d, %+v, %s", code, rows, said)
	}
	clean := func() {
		t.Helper()
		if rows, code, said := ask("verify", "three"); code != 0 || len(rows) != 3 || len(rows[0].Found)+len(rows[1].Found)+len(rows[2].Found) != 0 {
			t.Errorf("after the repair: exit code %d, %+v, %s", code, rows, said)
		}
		if got, err := os.ReadFile(file(follower, "three")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the file is not what it was: %v", err)
		}
	}
	clean()

	// Another record, with the checksum that it should have: it is told, and left alone until an operator says that the leader is right.
	forge := func(all []byte) (int, []byte) {
		v, rest, err := record.Split(all)
		if err != nil {
			t.Fatal(err)
		}
		at := len(v)
		if v, _, err = record.Split(rest); err != nil {
			t.Fatal(err)
		}
		v = slices.Clone(v)
		copy(v[bytes.Index(v, []byte("record 1 ")):], "rumour 1 ")
		binary.BigEndian.PutUint32(v[17:], crc32.Checksum(v[21:], crc32.MakeTable(crc32.Castagnoli)))
		return at, v
	}
	patch(t, file(follower, "three"), forge)
	other := []checkup.Range{{From: 1, To: 2, Kind: "another record"}}
	if rows, code, said := ask("verify", "three:0", "--broker", on); code != exitFailed || len(rows) != 1 || !reflect.DeepEqual(rows[0].Divergent, other) || rows[0].Sound || !strings.Contains(said, codeUnsound) {
		t.Errorf("a divergent follower: exit code %d, %+v, %s", code, rows, said)
	}
	if rows, code, said := ask("repair", "three:0", "--broker", on); code != exitFailed || len(rows) != 1 || len(rows[0].Divergent) != 1 || !strings.Contains(said, "TRP-2112") {
		t.Errorf("a repair of damage only: exit code %d, %+v, %s", code, rows, said)
	}
	if now, err := os.ReadFile(file(follower, "three")); err != nil || bytes.Equal(now, want) {
		t.Errorf("it was changed: %v", err)
	}
	if rows, code, said := ask("repair", "three:0", "--broker", on, "--divergent"); code != 0 || len(rows) != 1 || !rows[0].Sound {
		t.Errorf("a repair of what differs: exit code %d, %+v, %s", code, rows, said)
	}
	clean()

	// A damaged leader hands over, and its successor is compared with nobody: it is sound.
	leader := slices.IndexFunc(all, func(r replicaRow) bool { return r.Topic == "three" && r.State == "leader" })
	finds := func() int { return strings.Count(c.alive[all[leader].Broker-1].log(t), "TRP-2103") }
	before := finds()
	patch(t, file(all[leader].Broker, "three"), turn)
	if rows, _, said := ask("verify", "three:0"); len(rows) != 3 || slices.ContainsFunc(rows, func(r replicaRow) bool {
		return r.State == "leader" && (!r.Sound || r.Broker == all[leader].Broker)
	}) || finds() == before { // a follower that compares may meet it before the leader's own check does
		t.Errorf("damaged leader %d: %+v, %s", all[leader].Broker, rows, said)
	}
	if _, code, said := ask("repair", "three:0"); code != 0 {
		t.Errorf("a repair of the damaged leader: exit code %d, %s", code, said)
	}
	clean()

	// Where there is one replica nothing brings it back: that is said, and all other records are read.
	patch(t, file(int32(lone+1), "one"), turn)
	for _, verb := range []string{"verify", "repair"} {
		if rows, code, said := ask(verb, "one:0"); code != exitFailed || len(rows) != 1 || !reflect.DeepEqual(rows[0].Damaged, bad) || rows[0].Repair != checkup.Impossible || !strings.Contains(rows[0].Why, "only replica") {
			t.Errorf("%s: exit code %d, %+v, %s", verb, code, rows, said)
		}
	}
	text := troupe(t, "", nil, "partition", "verify", "one", "--bootstrap", first.addr())
	if !strings.Contains(text.out, "damaged: offsets 2 to 2") || !strings.Contains(text.out, "the only replica") || text.code != exitFailed {
		t.Errorf("exit code %d, %s", text.code, text.out)
	}
	if got := c.readable("one", 25); got != 24 {
		t.Errorf("%d of 25 records are read", got)
	}

	// What is not there, and who is not.
	if _, code, said := ask("verify", "four"); code != exitFailed || !strings.Contains(said, codeNotFound) {
		t.Errorf("no such topic: exit code %d, %s", code, said)
	}
	if _, code, said := ask("verify", "three:7"); code != exitFailed || !strings.Contains(said, codeNotFound) {
		t.Errorf("no such partition: exit code %d, %s", code, said)
	}
	if _, code, said := ask("verify", "one:0", "--broker", fmt.Sprint((lone+1)%3+1)); code != exitFailed || !strings.Contains(said, codeNotFound) {
		t.Errorf("no such replica: exit code %d, %s", code, said)
	}
	c.alive[2].kill(t)
	if rows, code, said := ask("verify", "three", "--timeout", "60s"); code != exitFailed || len(rows) != 3 || rows[2].State != "unknown" || rows[2].Sound || rows[2].Error == "" {
		t.Errorf("a broker is dead: exit code %d, %+v, %s", code, rows, said)
	}
}

// Ranges that did not fit a list are as bad as those that did.
func TestWhatDoesNotFitAListIsNotSound(t *testing.T) {
	k := replicaKey{partitionKey{"t", 0}, 1}
	for name, c := range map[string]struct {
		report checkup.Report
		sound  bool
	}{
		"all is well":      {checkup.Report{State: "follower", Whole: true}, true},
		"more is damaged":  {checkup.Report{State: "follower", Whole: true, MoreDamage: 1}, false},
		"more differs":     {checkup.Report{State: "follower", Whole: true, MoreDiffer: 1}, false},
		"it was not whole": {checkup.Report{State: "follower"}, false},
	} {
		rows := replicaRows{rowsOf([]replicaKey{k}, map[replicaKey]checkupAnswer{k: {Report: c.report}}, true)}
		if err := rows.failure(); rows.Replicas[0].Sound != c.sound || (err == nil) != c.sound {
			t.Errorf("%s: %+v, %v", name, rows.Replicas[0], err)
		}
	}
}

// Who could not compare all is asked again when the partition has another leader than when the check was ordered.
func TestWhatAChangeOfTheLeaderLeftUncomparedIsCheckedAgain(t *testing.T) {
	key := func(broker int32) replicaKey { return replicaKey{partitionKey{"t", 0}, broker} }
	asked, answers := map[replicaKey]checkup.Report{}, map[replicaKey]checkupAnswer{}
	var keys []replicaKey
	for broker, now := range []struct {
		leader      int32
		notCompared string
		silent      string
	}{
		{1, "", ""},                       // the damaged leader, which follows now
		{1, "the leader cannot read", ""}, // its successor
		{1, "the leader cannot read", ""}, // another follower
		{0, "the leader cannot read", ""}, // one that follows the old one yet
		{-1, "nobody leads", ""},
		{1, "the leader cannot read", "gone"},
	} {
		k := key(int32(broker))
		keys = append(keys, k)
		asked[k] = checkup.Report{Asked: 1, Leader: 0}
		answers[k] = checkupAnswer{Report: checkup.Report{Leader: now.leader, NotCompared: now.notCompared}, silent: now.silent}
	}
	if again := ledAnew(keys, asked, answers); !slices.Equal(again, []replicaKey{key(1), key(2)}) {
		t.Errorf("asked again: %v", again)
	}
	for mending, want := range map[checkup.Mending]bool{checkup.Waiting: true, checkup.Impossible: false} {
		answers[key(0)] = checkupAnswer{Report: checkup.Report{State: "leader", Damaged: []checkup.Range{{From: 2, To: 3}}, Mending: mending}}
		if got := handsOver(keys, answers); got != want {
			t.Errorf("a damaged leader whose repair is %s hands over: %v", mending, got)
		}
	}
}

// Notes below a row leave the columns of the next one where they are.
func TestNotesOfAReplicaStandBetweenTheRows(t *testing.T) {
	rows := replicaRows{Replicas: []replicaRow{
		{Topic: "big", Broker: 1, State: "leader", End: 7, Damaged: []checkup.Range{{From: 2, To: 3}}, Repair: checkup.Impossible, Why: "it is the only replica"},
		{Topic: "big", Broker: 2, State: "follower", End: 7, Sound: true, Repair: checkup.Sound},
		{Topic: "big", Broker: 3, State: "follower", End: 7, Sound: true, Repair: checkup.Sound},
	}}
	var out strings.Builder
	s := &session{out: &out, format: formatText}
	if err := s.show(&rows, rows.text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 7 || lines[2] != "    damaged: offsets 2 to 2" || lines[3] != "    repair: it is the only replica" {
		t.Fatalf("%s", out.String())
	}
	for _, i := range []int{1, 4, 5} {
		if at := strings.Index(lines[0], "START"); lines[i][at-1:at+1] != " 0" || lines[i][strings.Index(lines[0], "END")] != '7' {
			t.Errorf("line %d is not below its head:\n%s", i, out.String())
		}
	}
}

// readable counts the offsets below end of partition 0 that can be read, each by itself.
func (c *trio) readable(topic string, end int64) (n int) {
	c.t.Helper()
	for at := range end {
		client, err := kgo.NewClient(kgo.SeedBrokers(c.clients[:]...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(at)}}))
		if err != nil {
			c.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
		for found := false; !found; {
			fetches := client.PollFetches(ctx)
			if fetches.Err() != nil {
				break
			}
			if r := fetches.Records(); len(r) > 0 {
				if found = true; r[0].Offset == at {
					n++
				}
			}
		}
		cancel()
		client.Close()
	}
	return n
}

// A broker that refuses an order has answered: what it says reaches whoever gave the order, also where the response has no error code.
func TestARefusedOrderIsToldWithItsReason(t *testing.T) {
	refusal := checkup.Refusal{Error: `there is no order "dance"`}
	for name, c := range map[string]struct {
		code int16
		tag  []byte
		want []string // nothing: it is taken
	}{
		"it is taken":                      {},
		"version 2":                        {tag: refusal.Encode(), want: []string{"the broker refuses", "dance"}},
		"later versions":                   {code: 42, tag: refusal.Encode(), want: []string{"the broker refuses", "dance"}},
		"a broker that gives no reason":    {code: 42, want: []string{"the broker refuses", "INVALID_REQUEST"}},
		"a reason that nobody understands": {code: 42, tag: []byte("[]"), want: []string{"refusal that does not parse"}},
	} {
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		if resp.ErrorCode = c.code; c.tag != nil {
			resp.UnknownTags.Set(checkup.Tag, c.tag)
		}
		err := refusalIn(resp)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// The reason is in the message of the command, not in its table alone, and nothing that is said later hides it.
func TestWhyAnOrderWasNotCarriedOutIsInTheMessage(t *testing.T) {
	k := replicaKey{partitionKey{"t", 0}, 1}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for name, c := range map[string]struct {
		answer   checkupAnswer
		verified bool
		late     bool
		want     []string
	}{
		"a broker that refuses":                 {answer: checkupAnswer{silent: "the broker refuses: no"}, want: []string{"t-0 of broker 1 (the broker refuses: no)"}},
		"a replica that cannot":                 {answer: checkupAnswer{Report: checkup.Report{Error: "it was not checked"}}, want: []string{"(it was not checked)"}},
		"and is not mended in time":             {answer: checkupAnswer{Report: checkup.Report{Error: "it was not checked"}}, late: true, want: []string{"it was not checked; late"}},
		"a check that nobody took":              {answer: checkupAnswer{Report: checkup.Report{Error: "no check was ordered"}}, late: true, verified: true, want: []string{"(no check was ordered)"}},
		"a check that is under way, or was not": {answer: checkupAnswer{}, late: true, verified: true, want: []string{"(late)"}},
	} {
		keys, answers := []replicaKey{k}, map[replicaKey]checkupAnswer{k: c.answer}
		rows := rowsOf(keys, answers, c.verified)
		if c.late {
			rows, _ = outOfTime(ctx, keys, answers, keys, c.verified, "late")
		}
		err := (&replicaRows{rows}).failure()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}
