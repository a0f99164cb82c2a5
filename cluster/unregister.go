package cluster

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// UnregisterBroker forgets a broker that is gone for good (API 64).
type UnregisterBroker struct {
	Ask
	Broker ident.BrokerID
}

func (*UnregisterBroker) command() {}

// UnregisterBrokerReply answers UnregisterBroker.
type UnregisterBrokerReply struct{}

func (*UnregisterBrokerReply) replyBody() {}

// UnregisterBrokerRecord ends the registration of a broker. A run of it that comes back registers as one that nobody knew.
type UnregisterBrokerRecord struct {
	Broker ident.BrokerID
	Epoch  ident.BrokerEpoch
}

// Code implements Record.
func (*UnregisterBrokerRecord) Code() Code { return CodeForgetBroker }

// unregisterSince is the level of troupe.peer.version from which on the record may be written: a broker of an older build does not know it, and stops.
const unregisterSince = 2

// unregisterBroker refuses whoever may still be needed: a broker that lives, one that partitions count on, and a voter, whose address the others have from its
// registration. Without those a broker that comes back has nothing to be judged by.
func (c *Controller) unregisterBroker(now Now, cmd *UnregisterBroker) decision {
	b, ok := c.next.Broker(cmd.Broker)
	if !ok {
		return refused(refuse(wire.BrokerIDNotRegistered, "broker %d is not registered", cmd.Broker))
	}
	if level := c.next.FeatureLevel(PeerVersion); level < unregisterSince {
		return refused(refuse(wire.UnsupportedVersion, "the cluster uses %s level %d, and brokers can be unregistered from level %d on; when all brokers are up to date, raise it", PeerVersion, level, unregisterSince))
	}
	if s := c.sessions[b.ID]; !b.Fenced || s.alive && !c.silent(now, b) && !c.hungUp(b) {
		return refused(refuse(wire.InvalidRequest, "broker %d is alive; stop it first", b.ID))
	}
	for _, v := range c.next.voters {
		if v.Broker == b.ID {
			return refused(refuse(wire.InvalidRequest, "broker %d is a voter of the metadata quorum; remove it from the voters first", b.ID))
		}
	}
	if n, topic, partition := c.next.holds(b.ID); n > 0 {
		return refused(refuse(wire.InvalidRequest, "broker %d is to hold %d replicas, one of them of %s-%d; move them to other brokers first", b.ID, n, topic, partition))
	}
	delete(c.omens, b.ID)
	delete(c.sessions, b.ID)
	return decision{records: []Record{&UnregisterBrokerRecord{Broker: b.ID, Epoch: b.Epoch}}, body: &UnregisterBrokerReply{}}
}

// holds counts the replicas that are assigned to a broker, and names one of them.
func (m *Image) holds(b ident.BrokerID) (n int, topic string, partition int) {
	for t := range m.Topics() {
		for i, p := range t.Partitions {
			if p.HasReplica(b) {
				n, topic, partition = n+1, t.Name, i
			}
		}
	}
	return n, topic, partition
}

func (a *applier) unregisterBroker(rec *UnregisterBrokerRecord) error {
	old, ok := a.to.brokers.get(rec.Broker)
	if !ok || old.Epoch != rec.Epoch {
		return fmt.Errorf("no broker %d with epoch %d", rec.Broker, rec.Epoch)
	}
	a.to.brokers.remove(a.edit, rec.Broker)
	a.brokers = append(a.brokers, rec.Broker)
	return nil
}

func (rec *UnregisterBrokerRecord) encode(w *writer) {
	w.open(CodeForgetBroker, 2)
	w.int(int64(rec.Broker))
	w.int(int64(rec.Epoch))
}

func (r *reader) unregisterBroker(f *fields) Record {
	rec := &UnregisterBrokerRecord{}
	f.broker(&rec.Broker)
	f.brokerEpoch(&rec.Epoch)
	return rec
}

func (cmd *UnregisterBroker) encode(w *writer) {
	w.command(CodeUnregister, 1)
	w.int(int64(cmd.Broker))
}

func (*UnregisterBrokerReply) encode(w *writer) { w.answer(CodeUnregister, 0) }
