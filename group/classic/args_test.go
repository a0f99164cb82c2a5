package classic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// args reads the arguments of one line of a script and fails on what it does not know.
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

func (a *args) has(key string) bool {
	a.used[key] = true
	return slices.ContainsFunc(a.d.CmdArgs, func(arg datadriven.CmdArg) bool { return arg.Key == key })
}

func (a *args) str(key, otherwise string) string {
	if v := a.list(key); v != nil {
		return strings.Join(v, "")
	}
	return otherwise
}

func (a *args) num(key string, otherwise int64) int64 {
	s := a.str(key, "")
	if s == "" {
		return otherwise
	}
	var n int64
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		a.t.Fatalf("%s: %s=%s is not a number", a.d.Pos, key, s)
	}
	return n
}

func (a *args) code(key string) wire.ErrorCode {
	name := a.str(key, "")
	for c := wire.ErrorCode(1); c.Known(); c++ {
		if c.String() == name {
			return c
		}
	}
	a.t.Fatalf("%s: %q is no error code", a.d.Pos, name)
	return wire.NoError
}

func (a *args) allUsed() {
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.t.Fatalf("%s: %s has no argument %s", a.d.Pos, a.d.Cmd, arg.Key)
		}
	}
}

// join reads a Join of a version (v, 9 if not said): new= is the id that the member would get, protocols= their names, topics= what it says with each.
func (a *args) join() *coord.Join {
	version := a.num("v", 9)
	c := &coord.Join{
		Group: "g", Member: a.str("member", ""), Instance: a.str("instance", ""), NewMember: a.str("new", ""),
		Client: coord.Client{ID: a.str("client", "c"), Host: "/127.0.0.1"}, ProtocolType: a.str("type", classic.ConsumerProtocol),
		SessionTimeout: int32(a.num("session", 10_000)), RebalanceTimeout: int32(a.num("rebalance", 60_000)), Reason: a.str("reason", ""),
		RequireKnownMember: version >= 4, SkipAssignment: version >= 9,
	}
	topics := a.list("topics")
	if topics == nil {
		topics = []string{"t"}
	}
	protocols := a.list("protocols")
	if protocols == nil {
		protocols = []string{"range"}
	}
	for _, name := range protocols {
		if name == "none" {
			break
		}
		p := coord.Protocol{Name: name, Metadata: subscription(topics...)}
		if raw := a.str("metadata", ""); raw != "" {
			p.Metadata = []byte(raw)
		}
		p.Metadata = append(p.Metadata, a.str("owned", "")...)
		c.Protocols = append(c.Protocols, p)
	}
	return c
}

// sync reads a Sync; assign=(member:assignment, …) makes it a leader's.
func (a *args) sync() *coord.Sync {
	c := &coord.Sync{
		Group: "g", Member: a.str("member", ""), Instance: a.str("instance", ""), Generation: int32(a.num("generation", 1)),
		ProtocolType: a.str("type", classic.ConsumerProtocol), Protocol: a.str("protocol", "range"),
	}
	if a.has("unsaid") { // as before v5
		c.ProtocolType, c.Protocol = "", ""
	}
	for _, pair := range a.list("assign") {
		m, what, ok := strings.Cut(pair, ":")
		if !ok {
			a.t.Fatalf("%s: assign=%s is not member:assignment", a.d.Pos, pair)
		}
		c.Assignments = append(c.Assignments, coord.MemberAssignment{Member: m, Assignment: []byte(what)})
	}
	return c
}

// leave reads who leaves: member, member/instance or /instance.
func (a *args) leave() *coord.Leave {
	c := &coord.Leave{Group: "g"}
	reason := a.str("reason", "")
	for _, who := range a.list("members") {
		m, instance, _ := strings.Cut(who, "/")
		c.Members = append(c.Members, coord.LeavingMember{Member: m, Instance: instance, Reason: reason})
	}
	return c
}

// generation reads a stored generation; each line of the input is a member: id/instance session rebalance assignment.
func (a *args) generation() *records.Generation {
	if a.has("tombstone") {
		return nil
	}
	v := &records.Generation{
		ProtocolType: a.str("type", classic.ConsumerProtocol), Generation: int32(a.num("generation", 1)), StateTime: ident.Millis(a.num("time", 1_000_000)),
	}
	if p := a.str("protocol", "range"); p != "-" {
		v.Protocol = new(p)
	}
	if l := a.str("leader", "-"); l != "-" {
		v.Leader = new(l)
	}
	for line := range strings.Lines(a.d.Input) {
		f := strings.Fields(line)
		if len(f) != 4 {
			a.t.Fatalf("%s: %q is not: id/instance session rebalance assignment", a.d.Pos, line)
		}
		m := records.ClassicMember{ClientID: "c", ClientHost: "/127.0.0.1", Subscription: subscription("t"), Assignment: []byte(f[3])}
		id, instance, static := strings.Cut(f[0], "/")
		m.Member = id
		if static {
			m.Instance = new(instance)
		}
		if _, err := fmt.Sscan(f[1]+" "+f[2], &m.SessionTimeout, &m.RebalanceTimeout); err != nil {
			a.t.Fatalf("%s: %v", a.d.Pos, err)
		}
		v.Members = append(v.Members, m)
	}
	return v
}
