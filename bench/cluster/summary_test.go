package main

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	var gaps []time.Duration
	for i := 20; i > 0; i-- {
		gaps = append(gaps, time.Duration(i)*time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 10, 0.95: 19, 0.99: 20, 1: 20} {
		if got := quantile(gaps, q); got != want*time.Millisecond {
			t.Errorf("quantile %v of 1 to 20 ms is %v, want %d ms", q, got, want)
		}
	}
}

func TestTheSummarySaysWhatWasWantedAndWhatCameOut(t *testing.T) {
	r := &rawLog{w: &strings.Builder{}}
	add := func(line any) {
		t.Helper()
		if err := r.add(line); err != nil {
			t.Fatal(err)
		}
	}
	for i, gap := range []time.Duration{40, 250, 1100} {
		add(trialLine{Row: rowFailover, Target: nameTroupe, Class: report.Synced, Fault: "leader", Client: clientRaw, Trial: i, Gap: gap * time.Millisecond, Shown: 10 * time.Millisecond})
		add(trialLine{Row: rowFailover, Target: nameKafka, Class: report.Synced, Fault: "leader", Client: clientRaw, Trial: i, Gap: 9 * gap * time.Millisecond})
	}
	for target, p99 := range map[string]int64{nameTroupe: 2e6, nameKafka: 8e6} {
		s := report.Sample{Workload: report.Workload{Name: "open loop", Class: report.Cached}, Target: target, Round: 1, Bytes: 1e9, CPU: time.Duration(p99) * 1e3, Ack: map[string]int64{"99": p99}}
		add(latencyLine{Row: rowLatency, Sample: s, RssAnon: map[int32]int64{1: 1e7, 2: 2e7}})
	}
	add(idleLine{Row: rowIdle, Target: nameTroupe, Broker: 1, RssAnon: 10e6, CPU: 0.005})
	for i, took := range []time.Duration{900, 1700, 2500} {
		add(manyLine{Row: rowMany, Target: nameTroupe, What: manyFailover, Trial: i, Partitions: 10_000, Concerned: 3333, Took: took * time.Millisecond})
	}
	add(idleLine{Row: rowIdle, Target: nameTroupe, Broker: 1, Partitions: 1000, RssAnon: 24e6, CPU: 0.006})

	var b strings.Builder
	if err := r.summary(&b); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(b.String()) {
		lines[strings.Join(strings.Fields(line), " ")] = line
	}
	for _, want := range []string{
		"killed: a leader that is not the controller synced raw troupe 3 250 1100 1100 10 p50 ≤ 300, p99 ≤ 1000 missed",
		"killed: a leader that is not the controller synced raw kafka 3 2250 9900 9900",
		"open loop cached troupe 1 0.00 2.00 0.00 0.00 0.00 0.00 2.00 10–20 p99 0.25 of Kafka's, CPU 0.25",
		manyFailover + " synced troupe 10000 3 1700 2500 ≤ 2000 missed",
		"troupe, as it was made 1 1000 0.60 24.0 14.0 0",
	} {
		if _, ok := lines[want]; !ok {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

func TestAFaultHitsWhomItNames(t *testing.T) {
	nodes := []*peer.Node{{ID: 1}, {ID: 2}, {ID: 3}}
	for _, f := range faults {
		for trial := range 4 {
			const controller = 2
			leader, victim := f.cast(controller, nodes, trial)
			if (victim == controller) != f.ofController || (victim == leader) != f.ofLeader || leader < 1 || leader > 3 {
				t.Errorf("%s, trial %d: broker %d leads and %d is lost", f.name, trial, leader, victim)
			}
		}
	}
}
