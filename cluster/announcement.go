package cluster

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Announcement is what a broker tells all others until it belongs to a cluster, and after that so that those without one find it.
type Announcement struct {
	Broker    ident.BrokerID
	Node      ident.NodeID
	Directory ident.DirectoryID
	Expect    int             // how many voters found the cluster (--bootstrap-expect); 0: this broker founds none
	Cluster   ident.ClusterID // that it belongs to; empty: none
	Promise   *Promise        // what it has promised, synced; nil: nothing
}

// voter is the announcer in the voter set of a promise.
func (a *Announcement) voter() Voter { return Voter{a.Node, a.Broker, a.Directory} }

// announcementVersion is the version of what EncodeAnnouncement writes: [version, broker, node, directory, expect, cluster, promise|nil], a promise being
// [cluster, [voter…], [[feature, level]…]]. It grows at its end.
const announcementVersion = 1

// EncodeAnnouncement writes an announcement, at most some 400 bytes.
func EncodeAnnouncement(a Announcement) []byte {
	w := newWriter()
	w.array(7)
	w.uint(announcementVersion)
	w.int(int64(a.Broker))
	w.uint(uint64(a.Node))
	w.bytes(a.Directory[:])
	w.int(int64(a.Expect))
	w.string(string(a.Cluster))
	if a.Promise == nil {
		w.nil()
		return w.buf.Bytes()
	}
	w.array(3)
	w.string(string(a.Promise.ClusterID))
	w.voters(a.Promise.Voters)
	each(w, a.Promise.Features, func(f *FeatureLevel) {
		w.array(2)
		w.string(f.Name)
		w.int(int64(f.Level))
	})
	return w.buf.Bytes()
}

// DecodeAnnouncement reads an announcement of anybody. Errors wrap ErrMalformed.
func DecodeAnnouncement(b []byte) (Announcement, error) {
	r := newReader(b)
	f, a, version := r.fields(), Announcement{}, uint64(0)
	f.uint(&version)
	f.broker(&a.Broker)
	f.uint((*uint64)(&a.Node))
	f.id((*[16]byte)(&a.Directory))
	if f.next() {
		a.Expect = int(r.ranged(0, sightsMax))
	}
	f.string((*string)(&a.Cluster))
	if f.next() && !r.null() {
		a.Promise = r.promise()
	}
	f.close()
	if r.err == nil && (r.left() > 0 || version == 0 || a.Node == 0 || a.Broker < 0) {
		r.fail(fmt.Errorf("broker %d, node %v, version %d, %d bytes behind", a.Broker, a.Node, version, r.left()))
	}
	if r.err != nil {
		return Announcement{}, r.err
	}
	return a, nil
}

func (r *reader) promise() *Promise {
	f, p := r.fields(), &Promise{}
	f.string((*string)(&p.ClusterID))
	if f.next() {
		p.Voters = r.voters()
	}
	if f.next() {
		p.Features = list(r, detailsMax, func(f *fields, l *FeatureLevel) {
			f.string(&l.Name)
			number(f, &l.Level, 0, 1<<15-1)
		})
	}
	f.close()
	return p
}
