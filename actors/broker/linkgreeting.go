package broker

import (
	"fmt"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// greeted takes the first message of the other side.
func (l *linkActor) greeted(t *runtime.Turn, m peer.Message) error {
	switch m := m.(type) {
	case *peer.Hello:
		if !l.info.dialled {
			return l.hello(t, m)
		}
	case *peer.Welcome:
		if l.info.dialled {
			return l.welcome(t, m)
		}
	case *peer.Refuse:
		return &refusedError{code: m.Reason, text: m.Text}
	}
	return misplaced(m)
}

// hello answers who has dialled.
func (l *linkActor) hello(t *runtime.Turn, m *peer.Hello) error {
	l.me = l.links.table.identity()
	spoken := l.links.versions
	version, ok := spoken.Agree(m.VersionMin, m.VersionMax)
	switch {
	case !ok:
		return &limitError{codeLinkVersion, fmt.Sprintf(
			"this broker speaks versions %d to %d of the protocol between brokers, the other one %d to %d; upgrade the older one",
			spoken.Min, spoken.Max, m.VersionMin, m.VersionMax)}
	case m.Purpose != peer.Control && m.Purpose != peer.Data:
		return misplaced(m)
	case m.Expect != ident.NoBroker && m.Expect != l.me.Broker:
		return &limitError{codeLinkBroker, fmt.Sprintf("this is broker %d; broker %d was expected at this address", l.me.Broker, m.Expect)}
	}
	l.info.purpose, l.info.version = m.Purpose, version
	if err := l.acquaint(&m.Identity); err != nil {
		return err
	}
	if err := l.open(t); err != nil {
		return err
	}
	l.preface()
	l.append(&peer.Welcome{Version: version, Identity: l.me})
	return nil
}

// welcome takes the answer of who was dialled.
func (l *linkActor) welcome(t *runtime.Turn, m *peer.Welcome) error {
	if m.Version < l.links.versions.Min || m.Version > l.links.versions.Max {
		return &limitError{codeLinkVersion, fmt.Sprintf("the other broker chose version %d of the protocol, which this one does not speak", m.Version)}
	}
	if l.expect != ident.NoBroker && m.Identity.Broker != l.expect {
		return &limitError{codeLinkBroker, fmt.Sprintf("broker %d answers at %s; broker %d was expected there", m.Identity.Broker, l.address, l.expect)}
	}
	l.info.version = m.Version
	if err := l.acquaint(&m.Identity); err != nil {
		return err
	}
	return l.open(t)
}

// acquaint checks who the other side is.
func (l *linkActor) acquaint(who *peer.Identity) error {
	l.info.peer = *who
	l.info.founding = who.Cluster == "" || l.me.Cluster == ""
	switch {
	case who.Broker < 0:
		return &limitError{codeLinkBroker, fmt.Sprintf("%d is the id of no broker", who.Broker)}
	case who.Broker == l.me.Broker && who.Incarnation == l.me.Incarnation:
		return &limitError{codeLinkBroker, "this broker has reached itself; the address of another broker leads here"}
	case who.Broker == l.me.Broker:
		return &limitError{codeLinkBroker, fmt.Sprintf("two brokers have the id %d; give one of them another broker.id", who.Broker)}
	case !l.info.founding && who.Cluster != l.me.Cluster:
		return &limitError{codeLinkCluster, fmt.Sprintf("broker %d belongs to cluster %s, broker %d to cluster %s", who.Broker, who.Cluster, l.me.Broker, l.me.Cluster)}
	case l.info.founding && l.info.purpose != peer.Control:
		return &limitError{codeLinkCluster, "a broker without a cluster has no use for a data connection"}
	}
	return l.links.handler.admit(who)
}

// open makes the link one that is used.
func (l *linkActor) open(t *runtime.Turn) error {
	void, err := l.links.table.enter(l.info)
	if err != nil {
		return err
	}
	if l.me != l.links.table.identity() {
		l.links.table.leave(l.info)
		return &limitError{codeLinkAgain, "this broker has registered while the connection was made; connect again"}
	}
	for _, old := range void {
		_ = t.Send(old.ref, &linkVoid{reason: errLinkVoid}) // one that has stopped is gone already
	}
	now, _ := t.Now()
	l.state, l.openedAt = linkOpen, now
	l.probe.begin(now)
	l.timer.Reset(l.links.pace.tick)
	_ = t.Send(l.links.ref, &linkOpened{link: l, broker: l.info.peer.Broker}) // the actor of all links is gone only when the broker stops
	l.links.handler.opened(t, l.info)
	return nil
}
