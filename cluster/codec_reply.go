package cluster

import (
	"fmt"
	"math"
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// EncodeReply writes the answer to a command that came from another broker: [error|nil, code of the command, fields…], where an error is [code, message].
// The fields of each reply stand with its type's encoding below; they grow at the end. The request id travels outside.
func EncodeReply(reply Reply) []byte {
	w := newWriter()
	if reply.Err != nil || reply.Body == nil {
		w.array(1)
		w.error(reply.Err)
		return w.buf.Bytes()
	}
	reply.Body.encode(w)
	return w.buf.Bytes()
}

// DecodeReply reads what EncodeReply wrote. Errors wrap ErrMalformed, or ErrUnknownCode for the reply of a newer version.
func DecodeReply(b []byte) (Reply, error) {
	r := newReader(b)
	f := r.fields()
	reply := Reply{}
	if f.next() {
		reply.Err = r.error()
	}
	code, told := CommandCode(0), f.next()
	if told {
		code = CommandCode(r.ranged(0, math.MaxUint16))
	}
	if told && reply.Err == nil && r.err == nil {
		reply.Body = r.reply(code, &f)
	}
	f.close()
	if r.err == nil && r.left() > 0 {
		r.fail(fmt.Errorf("%d bytes after the reply", r.left()))
	}
	if r.err == nil && reply.Err == nil && reply.Body == nil {
		r.fail(fmt.Errorf("a reply with neither error nor body"))
	}
	if r.err != nil {
		return Reply{}, r.err
	}
	return reply, nil
}

func (r *reader) reply(code CommandCode, f *fields) ReplyBody {
	switch code {
	case CodeRegister:
		body := &RegisterBrokerReply{}
		f.brokerEpoch(&body.Epoch)
		return body
	case CodeHeartbeat:
		body := &HeartbeatReply{}
		f.bool(&body.CaughtUp)
		f.bool(&body.Fenced)
		f.bool(&body.ShouldShutDown)
		return body
	case CodeVerified:
		return &VerifiedReply{}
	case CodeMarkReplicas:
		return &MarkReplicasReply{}
	case CodeAddVoter:
		return &AddVoterReply{}
	case CodeRemoveVoter:
		return &RemoveVoterReply{}
	case CodeChangeISR:
		return r.changeISRReply(f)
	case CodeElectLeaders:
		return r.electLeadersReply(f)
	case CodeAlterReassignments:
		return r.alterReassignmentsReply(f)
	case CodeUnregister:
		return &UnregisterBrokerReply{}
	case CodeAllocateProducerIDs:
		body := &AllocateProducerIDsReply{}
		number(f, &body.First, 0, math.MaxInt64)
		number(f, &body.Count, 0, math.MaxInt32)
		return body
	case CodeCreateTopics:
		return r.createTopicsReply(f)
	case CodeDeleteTopics:
		return r.deleteTopicsReply(f)
	case CodeCreatePartitions:
		return r.createPartitionsReply(f)
	case CodeAlterConfigs:
		return r.alterConfigsReply(f)
	case CodeUpdateFeatures:
		return r.updateFeaturesReply(f)
	case CodeDescribeQuorum:
		return r.describeQuorumReply(f)
	case CodePull:
		return r.pullReply(f)
	case CodeIncrementalAlterConfigs: // answered as AlterConfigs
	}
	r.err = fmt.Errorf("%w: reply %d", ErrUnknownCode, code)
	return nil
}

// answer opens a reply that is no error.
func (w *writer) answer(code CommandCode, fields int) {
	w.array(fields + 2)
	w.nil()
	w.uint(uint64(code))
}

func (w *writer) error(err *Error) {
	if err == nil {
		w.nil()
		return
	}
	w.array(2)
	w.int(int64(err.Code))
	w.string(err.Message)
}

func (r *reader) error() *Error {
	if r.null() {
		return nil
	}
	f, refusal := r.fields(), &Error{Code: wire.UnknownServerError}
	number(&f, &refusal.Code, math.MinInt16, math.MaxInt16)
	f.string(&refusal.Message)
	f.close()
	return refusal
}

func (f *fields) error(to **Error) {
	if f.next() {
		*to = f.r.error()
	}
}

// [epoch]
func (body *RegisterBrokerReply) encode(w *writer) {
	w.answer(CodeRegister, 1)
	w.int(int64(body.Epoch))
}

// [caught up, fenced, should shut down]
func (body *HeartbeatReply) encode(w *writer) {
	w.answer(CodeHeartbeat, 3)
	w.bool(body.CaughtUp)
	w.bool(body.Fenced)
	w.bool(body.ShouldShutDown)
}

func (*VerifiedReply) encode(w *writer) { w.answer(CodeVerified, 0) }

func (*MarkReplicasReply) encode(w *writer) { w.answer(CodeMarkReplicas, 0) }

// [[[topic, partition, error|nil, leader, leader epoch, partition epoch, [broker…]]…]]
func (body *ChangeISRReply) encode(w *writer) {
	w.answer(CodeChangeISR, 1)
	each(w, body.Partitions, func(p *ISRResult) {
		w.array(7)
		w.bytes(p.Topic[:])
		w.int(int64(p.Partition))
		w.error(p.Err)
		w.int(int64(p.Leader))
		w.int(int64(p.LeaderEpoch))
		w.int(int64(p.Epoch))
		w.brokers(p.ISR)
	})
}

func (r *reader) changeISRReply(f *fields) ReplyBody {
	body := &ChangeISRReply{}
	if f.next() {
		body.Partitions = list(r, itemsMax, func(f *fields, p *ISRResult) {
			f.id((*[16]byte)(&p.Topic))
			number(f, &p.Partition, math.MinInt32, math.MaxInt32)
			f.error(&p.Err)
			f.broker(&p.Leader)
			number(f, &p.LeaderEpoch, -1, math.MaxInt32)
			number(f, &p.Epoch, -1, math.MaxInt32)
			if f.next() {
				p.ISR = r.brokers()
			}
		})
	}
	return body
}

// [[[name, partition, error|nil]…]]
func (body *ElectLeadersReply) encode(w *writer) {
	w.answer(CodeElectLeaders, 1)
	each(w, body.Partitions, func(p *ElectionResult) {
		w.array(3)
		w.string(p.Topic)
		w.int(int64(p.Partition))
		w.error(p.Err)
	})
}

func (r *reader) electLeadersReply(f *fields) ReplyBody {
	body := &ElectLeadersReply{}
	if f.next() {
		body.Partitions = list(r, replicasMax, func(f *fields, p *ElectionResult) {
			f.string(&p.Topic)
			number(f, &p.Partition, math.MinInt32, math.MaxInt32)
			f.error(&p.Err)
		})
	}
	return body
}

// [first, count]
func (body *AllocateProducerIDsReply) encode(w *writer) {
	w.answer(CodeAllocateProducerIDs, 2)
	w.int(int64(body.First))
	w.int(int64(body.Count))
}

// [[[name, error|nil, id, partitions, factor, [[key, value|nil, source, [[name, value, source]…]]…]|nil]…]]
func (body *CreateTopicsReply) encode(w *writer) {
	w.answer(CodeCreateTopics, 1)
	each(w, body.Topics, func(t *CreatedTopic) {
		w.array(6)
		w.string(t.Name)
		w.error(t.Err)
		w.bytes(t.ID[:])
		w.int(int64(t.Partitions))
		w.int(int64(t.ReplicationFactor))
		w.effective(t.Configs)
	})
}

// effective writes what is not the default; a topic has some sixty configs, and an answer to a request for many topics has to fit into a frame.
func (w *writer) effective(configs []config.Effective) {
	if len(configs) == 0 {
		w.nil()
		return
	}
	set := slices.DeleteFunc(slices.Clone(configs), func(e config.Effective) bool { return e.Source == config.DefaultConfig })
	each(w, set, func(e *config.Effective) {
		w.array(4)
		w.string(e.Key.Name)
		if e.Null {
			w.nil()
		} else {
			w.string(e.Value)
		}
		w.int(int64(e.Source))
		each(w, e.Chain, func(o *config.Origin) {
			w.array(3)
			w.string(o.Name)
			w.string(o.Value)
			w.int(int64(o.Source))
		})
	})
}

// effective reads the configs of a topic, by name. What is not said has its default; what this build does not know is left out.
func (r *reader) effective(defaults []config.Effective) []config.Effective {
	set := map[string]config.Effective{} // read by key only
	list(r, detailsMax, func(f *fields, _ *struct{}) {
		name, e := "", config.Effective{}
		f.string(&name)
		if f.next() {
			value := r.stringOrNil()
			if e.Null = value == nil; !e.Null {
				e.Value = *value
			}
		}
		number(f, &e.Source, math.MinInt8, math.MaxInt8)
		if f.next() {
			e.Chain = list(r, detailsMax, func(f *fields, o *config.Origin) {
				f.string(&o.Name)
				f.string(&o.Value)
				number(f, &o.Source, math.MinInt8, math.MaxInt8)
			})
		}
		set[name] = e
	})
	out := slices.Clone(defaults)
	for i := range out {
		if e, ok := set[out[i].Key.Name]; ok {
			e.Key = out[i].Key
			out[i] = e
		}
	}
	return out
}

// topicDefaults are the configs of a topic of which nothing is known.
func topicDefaults() []config.Effective {
	var out []config.Effective
	for k := range config.Topic().All() {
		if !k.Internal {
			out = append(out, config.Stack{}.ForTopic(k))
		}
	}
	return out
}

func (r *reader) createTopicsReply(f *fields) ReplyBody {
	body, defaults := &CreateTopicsReply{}, topicDefaults()
	if f.next() {
		body.Topics = list(r, itemsMax, func(f *fields, t *CreatedTopic) {
			f.string(&t.Name)
			f.error(&t.Err)
			f.id((*[16]byte)(&t.ID))
			number(f, &t.Partitions, math.MinInt32, math.MaxInt32)
			number(f, &t.ReplicationFactor, math.MinInt16, math.MaxInt16)
			if f.next() && !r.null() {
				t.Configs = r.effective(defaults)
			}
		})
	}
	return body
}

// [[[name, id, error|nil]…]]
func (body *DeleteTopicsReply) encode(w *writer) {
	w.answer(CodeDeleteTopics, 1)
	each(w, body.Topics, func(t *DeletedTopic) {
		w.array(3)
		w.string(t.Name)
		w.bytes(t.ID[:])
		w.error(t.Err)
	})
}

func (r *reader) deleteTopicsReply(f *fields) ReplyBody {
	body := &DeleteTopicsReply{}
	if f.next() {
		body.Topics = list(r, itemsMax, func(f *fields, t *DeletedTopic) {
			f.string(&t.Name)
			f.id((*[16]byte)(&t.ID))
			f.error(&t.Err)
		})
	}
	return body
}

// [[[name, error|nil]…]]
func (body *CreatePartitionsReply) encode(w *writer) {
	w.answer(CodeCreatePartitions, 1)
	each(w, body.Topics, func(t *TopicResult) {
		w.array(2)
		w.string(t.Name)
		w.error(t.Err)
	})
}

func (r *reader) createPartitionsReply(f *fields) ReplyBody {
	body := &CreatePartitionsReply{}
	if f.next() {
		body.Topics = list(r, itemsMax, func(f *fields, t *TopicResult) {
			f.string(&t.Name)
			f.error(&t.Err)
		})
	}
	return body
}

// [[[type, name, error|nil, [[warning]…]]…]]
func (body *AlterConfigsReply) encode(w *writer) {
	w.answer(CodeAlterConfigs, 1)
	each(w, body.Resources, func(res *ResourceResult) {
		w.array(4)
		w.resource(res.Resource)
		w.error(res.Err)
		each(w, res.Warnings, func(s *string) {
			w.array(1)
			w.string(*s)
		})
	})
}

func (r *reader) alterConfigsReply(f *fields) ReplyBody {
	body := &AlterConfigsReply{}
	if f.next() {
		body.Resources = list(r, itemsMax, func(f *fields, res *ResourceResult) {
			f.resource(&res.Resource)
			f.error(&res.Err)
			if f.next() {
				res.Warnings = list(r, detailsMax, func(f *fields, s *string) { f.string(s) })
			}
		})
	}
	return body
}

// [[[name, error|nil]…]]
func (body *UpdateFeaturesReply) encode(w *writer) {
	w.answer(CodeUpdateFeatures, 1)
	each(w, body.Features, func(res *FeatureResult) {
		w.array(2)
		w.string(res.Name)
		w.error(res.Err)
	})
}

func (r *reader) updateFeaturesReply(f *fields) ReplyBody {
	body := &UpdateFeaturesReply{}
	if f.next() {
		body.Features = list(r, detailsMax, func(f *fields, res *FeatureResult) {
			f.string(&res.Name)
			f.error(&res.Err)
		})
	}
	return body
}

// [leader, term, committed, [voter…], leader node, [observer…]], each [node, broker, directory, log end, last fetch, last caught up]
func (body *DescribeQuorumReply) encode(w *writer) {
	w.answer(CodeDescribeQuorum, 6)
	w.int(int64(body.Leader))
	w.uint(body.Term)
	w.uint(body.Committed)
	w.voterStates(body.Voters)
	w.uint(uint64(body.LeaderNode))
	w.voterStates(body.Observers)
}

func (*AddVoterReply) encode(w *writer) { w.answer(CodeAddVoter, 0) }

func (*RemoveVoterReply) encode(w *writer) { w.answer(CodeRemoveVoter, 0) }

func (w *writer) voterStates(states []VoterState) {
	each(w, states, func(s *VoterState) {
		w.array(6)
		w.uint(uint64(s.Node))
		w.int(int64(s.Broker))
		w.bytes(s.Directory[:])
		w.uint(s.LogEnd)
		w.int(int64(s.LastFetch))
		w.int(int64(s.LastCaughtUp))
	})
}

func (r *reader) voterStates() []VoterState {
	return list(r, itemsMax, func(f *fields, s *VoterState) {
		s.LastFetch, s.LastCaughtUp = ident.NoTimestamp, ident.NoTimestamp
		f.uint((*uint64)(&s.Node))
		f.broker(&s.Broker)
		f.id((*[16]byte)(&s.Directory))
		f.uint(&s.LogEnd)
		number(f, &s.LastFetch, math.MinInt64, math.MaxInt64)
		number(f, &s.LastCaughtUp, math.MinInt64, math.MaxInt64)
	})
}

func (r *reader) describeQuorumReply(f *fields) ReplyBody {
	body := &DescribeQuorumReply{}
	f.broker(&body.Leader)
	f.uint(&body.Term)
	f.uint(&body.Committed)
	if f.next() {
		body.Voters = r.voterStates()
	}
	f.uint((*uint64)(&body.LeaderNode))
	if f.next() {
		body.Observers = r.voterStates()
	}
	return body
}

// [[[index, term, data]…], [index, term, total, offset, data]|nil, committed, leader, term]
func (body *PullReply) encode(w *writer) {
	w.answer(CodePull, 5)
	each(w, body.Entries, func(e *Entry) {
		w.array(3)
		w.uint(e.Index)
		w.uint(e.Term)
		w.bytes(e.Data)
	})
	if s := body.Snapshot; s == nil {
		w.nil()
	} else {
		w.array(5)
		w.uint(s.Index)
		w.uint(s.Term)
		w.int(s.Total)
		w.int(s.Offset)
		w.bytes(s.Data)
	}
	w.uint(body.Committed)
	w.int(int64(body.Leader))
	w.uint(body.Term)
}

func (r *reader) pullReply(f *fields) ReplyBody {
	body := &PullReply{Leader: ident.NoBroker}
	if f.next() {
		body.Entries = list(r, replicasMax, func(f *fields, e *Entry) {
			f.uint(&e.Index)
			f.uint(&e.Term)
			if f.next() {
				e.Data = r.bytes()
			}
		})
	}
	if f.next() && !r.null() {
		body.Snapshot = r.snapshotPiece()
	}
	f.uint(&body.Committed)
	f.broker(&body.Leader)
	f.uint(&body.Term)
	return body
}

func (r *reader) snapshotPiece() *SnapshotPiece {
	f, s := r.fields(), &SnapshotPiece{}
	f.uint(&s.Index)
	f.uint(&s.Term)
	number(&f, &s.Total, 0, math.MaxInt64)
	number(&f, &s.Offset, 0, math.MaxInt64)
	if f.next() {
		s.Data = r.bytes()
	}
	f.close()
	return s
}

// bytes reads a bin; an empty one is nil.
func (r *reader) bytes() []byte {
	n := r.length()
	if n <= 0 {
		return nil
	}
	b := make([]byte, n)
	r.fail(r.dec.ReadFull(b))
	return b
}
