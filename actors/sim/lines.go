package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// coordinator is the broker that coordinates a group, by the newest metadata that is committed; ident.NoBroker: nobody does.
func (r *run) coordinator(group string) ident.BrokerID {
	t, known := r.ensemble.image.Topic(cluster.OffsetsTopic)
	if !known || len(t.Partitions) == 0 {
		return ident.NoBroker
	}
	return t.Partitions[records.PartitionOf(group, int32(len(t.Partitions)))].Leader
}

// line is the connection by which a member asks; nil: there is none now. The coordinator is asked by a connection of its own, and so is the broker that leads
// what is read.
func (m *member) line(req kmsg.Request) *client {
	if m.run.ensemble == nil {
		return m.client
	}
	switch req.(type) {
	case *kmsg.FindCoordinatorRequest, *kmsg.MetadataRequest:
		return m.client
	case *kmsg.FetchRequest, *kmsg.ListOffsetsRequest:
		line := m.reach(m.source)
		m.looked = m.looked && line != nil
		return line
	}
	line := m.reach(m.at)
	m.found = m.found && line != nil
	return line
}

// broken takes in that a request to the coordinator was not answered: another may coordinate by now.
func (m *member) broken(req kmsg.Request) {
	switch req.(type) {
	case *kmsg.FindCoordinatorRequest, *kmsg.MetadataRequest, *kmsg.FetchRequest, *kmsg.ListOffsetsRequest:
		return
	}
	if m.run.ensemble != nil {
		m.found, m.full = false, true
	}
}

// from picks a broker that leads some of the partitions that are wanted, and tells which of these it leads.
func (m *member) from(wanted func(*part) bool) func(*part) bool {
	if m.run.ensemble == nil {
		return wanted
	}
	var all []ident.BrokerID
	for _, p := range m.parts {
		if b := m.leaders.of(p.topic, p.number); wanted(p) && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return wanted // of nothing
	}
	m.source = one(m.rand, all...)
	return func(p *part) bool { return wanted(p) && m.leaders.of(p.topic, p.number) == m.source }
}

// present tells whether an answer came from the coordinator of now. A former one, that has not heard of its end, is believed by its members as long as its
// lease lasts; it vouches for nobody.
func (m *member) present() bool {
	return m.run.ensemble == nil || m.run.coordinator(m.ghost.name) == m.at
}

// confirm notes that the coordinator knows the member, by the answer to a request. While groups are loaded, everybody's is granted.
func (m *member) confirm(sent ident.Instant) {
	at := m.run.host
	if m.run.ensemble != nil {
		at = m.run.called(m.at)
	}
	if at != nil && sent > at.unserved && m.present() {
		m.confirmed = sent
	}
}
