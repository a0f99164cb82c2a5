package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// asks runs a command line against this broker and decodes what it says; it returns the exit code and what it said on stderr.
func (p *process) asks(t *testing.T, into any, args ...string) (int, string) {
	t.Helper()
	r := troupe(t, "", nil, append(args, "--bootstrap", p.addr(), "-o", "json")...)
	if r.out != "" {
		if err := json.Unmarshal([]byte(r.out), into); err != nil {
			t.Fatalf("troupe %v said %q: %v", args, r.out, err)
		}
	}
	return r.code, r.err
}

func TestBrokersAreRolledDrainedAndForgotten(t *testing.T) {
	c := newTrio(t)
	c.launchAll()
	first := c.alive[0]
	for i := range 3 {
		c.create(i, fmt.Sprint("topic-", i))
	}

	// Everything is in sync: each may be restarted, the controller last.
	var plan roll
	if code, said := first.asks(t, &plan, "roll"); code != 0 || len(plan.Brokers) != 3 || int(plan.Brokers[2].Broker) != c.controller(0)+1 {
		t.Fatalf("exit code %d, %+v, %s", code, plan, said)
	}
	if code, said := first.asks(t, &plan, "roll", "9"); code != exitFailed || !strings.Contains(said, codeNotFound) {
		t.Errorf("a broker that is not there: exit code %d, %s", code, said)
	}
	c.alive[2].kill(t)
	if code, said := first.asks(t, &plan, "roll", "1"); code != exitUnsafe || plan.Brokers[0].Safe || !strings.Contains(said, codeUnsafe) {
		t.Errorf("a broker is dead, and exit code %d, %+v, %s", code, plan, said)
	}
	if code, said := first.asks(t, &plan, "roll", "1", "--wait", "1s"); code != exitUnsafe || !strings.Contains(said, "waiting: restarting broker 1 is not safe now: ") {
		t.Errorf("a broker is dead, and nobody says what is waited for: exit code %d, %s", code, said)
	}
	c.launch(2)
	c.ready(2)
	if code, said := first.asks(t, &plan, "roll", "1", "--wait", "30s"); code != 0 {
		t.Fatalf("all are back, and exit code %d, %+v, %s", code, plan, said)
	}

	// A broker gives everything away, and gets its share again.
	var drained drainedBroker
	if code, said := first.asks(t, &drained, "broker", "drain", "3", "--dry-run"); code != 0 || drained.Done || len(drained.Moves) == 0 {
		t.Fatalf("exit code %d, %+v, %s", code, drained, said)
	}
	if code, said := first.asks(t, &drained, "broker", "drain", "3", "--timeout", "60s"); code != 0 || !drained.Done {
		t.Fatalf("exit code %d, %+v, %s", code, drained, said)
	}
	var shares balance
	if code, said := first.asks(t, &shares, "cluster", "balance"); code != 0 || shares.Brokers[2].Replicas != 0 || shares.Brokers[0].Replicas != 6 || len(shares.Moves) == 0 {
		t.Fatalf("exit code %d, %+v, %s", code, shares, said)
	}
	if code, said := first.asks(t, &shares, "cluster", "balance", "--repair", "--timeout", "60s"); code != 0 || !shares.Repaired || shares.Astray != 0 {
		t.Fatalf("exit code %d, %+v, %s", code, shares, said)
	}
	for _, b := range shares.Brokers {
		if b.Replicas != 4 {
			t.Errorf("of 12 replicas broker %d has %d", b.Broker, b.Replicas)
		}
	}
	if code, said := first.asks(t, &drained, "broker", "decommission", "3"); code != exitFailed || !strings.Contains(said, "voter") {
		t.Errorf("a voter: exit code %d, %s", code, said)
	}

	// A fourth broker comes, gets something to do, stops, and is forgotten with what it had.
	fourth, out := launch(t, "--broker-id", "4", "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--join", strings.Join(c.peers[:], ","),
		"--data-dir", filepath.Join(t.TempDir(), "data"), "-X", "metrics.listen=")
	if _, err := out.ReadBytes('\n'); err != nil {
		t.Fatalf("%v\n%s", err, fourth.log(t))
	}
	if code, said := first.asks(t, &shares, "cluster", "balance", "--repair", "--timeout", "60s"); code != 0 || len(shares.Brokers) != 4 || shares.Brokers[3].Replicas != 3 {
		t.Fatalf("exit code %d, %+v, %s", code, shares, said)
	}
	// It gets a vote and loses it again.
	var change voterChange
	if code, said := first.asks(t, &change, "cluster", "voters", "add", "4", "--timeout", "60s"); code != 0 || change.Done != "added" {
		t.Fatalf("exit code %d, %+v, %s", code, change, said)
	}
	var voters []voterRow
	if code, said := first.asks(t, &voters, "cluster", "voters", "list"); code != 0 || len(voters) != 4 || voters[3].Directory != change.Directory || !voters[3].votes() {
		t.Fatalf("exit code %d, %+v, %s", code, voters, said)
	}
	if code, said := first.asks(t, &change, "cluster", "voters", "add", "4"); code != exitFailed || !strings.Contains(said, codeNotFound) {
		t.Errorf("it votes already: exit code %d, %s", code, said)
	}
	if code, said := first.asks(t, &change, "cluster", "voters", "remove", "4", "--timeout", "60s"); code != 0 || change.Done != "removed" {
		t.Fatalf("exit code %d, %+v, %s", code, change, said)
	}
	fourth.stop(t)
	if code, said := first.asks(t, &drained, "broker", "decommission", "4", "--timeout", "60s"); code != 0 || !drained.Unregistered || len(drained.Moves) != 3 {
		t.Fatalf("exit code %d, %+v, %s", code, drained, said)
	}
	if code, said := first.asks(t, &shares, "cluster", "balance"); code != 0 || len(shares.Brokers) != 3 {
		t.Errorf("exit code %d, %+v, %s", code, shares, said)
	}
	if code, said := first.asks(t, &plan, "roll", "--wait", "30s"); code != 0 || len(plan.Brokers) != 3 {
		t.Errorf("exit code %d, %+v, %s", code, plan, said)
	}
}
