package cluster

import (
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

func (w *writer) brokers(list []ident.BrokerID) {
	w.array(len(list))
	for _, b := range list {
		w.int(int64(b))
	}
}

// brokersOrNil keeps the difference between "unchanged" (nil) and "empty".
func (w *writer) brokersOrNil(list []ident.BrokerID) {
	if list == nil {
		w.nil()
		return
	}
	w.brokers(list)
}

func (w *writer) directories(list []ident.DirectoryID) {
	w.array(len(list))
	for _, d := range list {
		w.bytes(d[:])
	}
}

func (w *writer) voters(list []Voter) {
	w.array(len(list))
	for _, v := range list {
		w.array(3)
		w.uint(uint64(v.Node))
		w.int(int64(v.Broker))
		w.bytes(v.Directory[:])
	}
}

func (w *writer) reports(list []Report) {
	w.array(len(list))
	for _, rep := range list {
		w.array(3)
		w.int(int64(rep.Broker))
		w.int(int64(rep.LastEpoch))
		w.int(int64(rep.End))
	}
}

// reports reads a list; an empty one is nil.
func (r *reader) reports() []Report {
	n := r.array()
	var list []Report
	for ; n > 0 && r.err == nil; n-- {
		f := r.fields()
		rep := Report{LastEpoch: ident.NoLeaderEpoch}
		if f.next() {
			rep.Broker = r.broker()
		}
		if f.next() {
			rep.LastEpoch = ident.LeaderEpoch(r.ranged(-1, math.MaxInt32))
		}
		if f.next() {
			rep.End = ident.Offset(r.ranged(0, math.MaxInt64))
		}
		f.close()
		list = append(list, rep)
	}
	return list
}

func (r *reader) election() Election {
	return Election(r.ranged(0, int64(ElectionPossibleLoss)))
}

func (w *writer) endpoints(list []Endpoint) {
	each(w, list, func(e *Endpoint) {
		w.array(4)
		w.string(e.Name)
		w.string(e.Host)
		w.uint(uint64(e.Port))
		w.int(int64(e.Protocol))
	})
}

func (r *reader) endpoints(most int) []Endpoint {
	return list(r, most, func(f *fields, e *Endpoint) {
		f.string(&e.Name)
		f.string(&e.Host)
		number(f, &e.Port, 0, math.MaxUint16)
		number(f, &e.Protocol, math.MinInt16, math.MaxInt16)
	})
}

func (w *writer) featureRanges(list []FeatureRange) {
	each(w, list, func(f *FeatureRange) {
		w.array(3)
		w.string(f.Name)
		w.int(int64(f.Min))
		w.int(int64(f.Max))
	})
}

func (r *reader) featureRanges(most int) []FeatureRange {
	return list(r, most, func(f *fields, to *FeatureRange) {
		f.string(&to.Name)
		number(f, &to.Min, math.MinInt16, math.MaxInt16)
		number(f, &to.Max, math.MinInt16, math.MaxInt16)
	})
}

func (r *reader) broker() ident.BrokerID {
	return ident.BrokerID(r.ranged(math.MinInt32, math.MaxInt32))
}

// brokers reads a list; an empty one is nil.
func (r *reader) brokers() []ident.BrokerID {
	list := r.brokersOrNil()
	if len(list) == 0 {
		return nil
	}
	return list
}

func (r *reader) brokersOrNil() []ident.BrokerID {
	n := r.array()
	if n < 0 || r.err != nil {
		return nil
	}
	list := make([]ident.BrokerID, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.broker())
	}
	return list
}

func (r *reader) directories() []ident.DirectoryID {
	n := r.array()
	var list []ident.DirectoryID
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.id())
	}
	return list
}

func (r *reader) voters() []Voter {
	n := r.array()
	var list []Voter
	for ; n > 0 && r.err == nil; n-- {
		f := r.fields()
		v := Voter{}
		if f.next() {
			v.Node = ident.NodeID(r.uint())
		}
		if f.next() {
			v.Broker = r.broker()
		}
		if f.next() {
			v.Directory = r.id()
		}
		f.close()
		list = append(list, v)
	}
	return list
}
