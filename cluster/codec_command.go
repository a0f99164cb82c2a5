package cluster

import (
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// CommandCode names a command that one broker may send to the controller in another. THE LEDGER: a code is never reused, a field never moves; arrays grow
// at their ends, a reader skips what it does not know there. Request id and deadline travel outside. The reply to a command has its code.
type CommandCode uint16

const (
	CodeRegister                CommandCode = 1  // 2026-11-30  [1, broker, incarnation, cluster, [[name, host, port, protocol]…], [directory…], rack, [[feature, min, max]…], clean epoch, [[directory, [[topic, [partition…] whole, [partition…] unverified]…]]…] held, [incarnation…] runs]
	CodeHeartbeat               CommandCode = 2  // 2026-11-30  [2, broker, epoch, applied, want fence, want shutdown, node]
	CodeVerified                CommandCode = 3  // 2026-11-30  [3, broker, epoch, [[topic, partition, whole, last epoch, end]…]]
	CodeChangeISR               CommandCode = 4  // 2026-11-30  [4, broker, epoch, [[topic, partition, leader epoch, partition epoch, [[broker, epoch, directory]…], resign]…]]
	CodeElectLeaders            CommandCode = 5  // 2026-11-30  [5, unclean, all, [[name, partition]…]]
	CodeAllocateProducerIDs     CommandCode = 6  // 2026-11-30  [6, broker, epoch]
	CodeCreateTopics            CommandCode = 7  // 2026-11-30  [7, [[name, id, partitions, factor, [[partition, [broker…]]…], [[key, value|nil]…], internal]…], validate only, entropy]
	CodeDeleteTopics            CommandCode = 8  // 2026-11-30  [8, [[name, id]…]]
	CodeCreatePartitions        CommandCode = 9  // 2026-11-30  [9, [[name, count, [[broker…]…]|nil]…], validate only, entropy]
	CodeAlterConfigs            CommandCode = 10 // 2026-11-30  [10, [[type, name, [[key, value|nil]…]]…], validate only]
	CodeIncrementalAlterConfigs CommandCode = 11 // 2026-11-30  [11, [[type, name, [[key, op, value|nil]…]]…], validate only]
	CodeUpdateFeatures          CommandCode = 12 // 2026-11-30  [12, [[name, level, kind]…], validate only]
	CodeDescribeQuorum          CommandCode = 13 // 2026-11-30  [13]
	CodePull                    CommandCode = 14 // 2026-11-30  [14, broker, cluster, from, term, snapshot index, offset, bytes max]
	CodeMarkReplicas            CommandCode = 15 // 2026-11-30  [15, broker, epoch, [[topic, partition, mark, full (2026-12-01)]…]]
	CodeAlterReassignments      CommandCode = 16 // 2026-12-01  [16, [[name, partition, [broker…]|nil]…], fix factor]
	CodeUnregister              CommandCode = 17 // 2026-12-01  [17, broker]
	CodeAddVoter                CommandCode = 20 // 2026-12-01  [20, cluster, broker, directory]
	CodeRemoveVoter             CommandCode = 21 // 2026-12-01  [21, cluster, broker, directory]
)

// Bounds of what one command may name. They keep what is allocated in proportion to what has arrived: an element takes a byte on the wire and more here.
const (
	itemsMax    = partitionsPerRequestMax // topics, partitions, resources
	detailsMax  = 1000                    // configs, endpoints, features, directories of one item
	runsMax     = 1000                    // runs of a broker
	replicasMax = 200_000                 // replicas of a broker
)

// AskOf returns what a command carries for its answer; nil for one that is never answered.
func AskOf(cmd Command) *Ask {
	if c, ok := cmd.(interface{ ask() *Ask }); ok {
		return c.ask()
	}
	return nil
}

func (a *Ask) ask() *Ask { return a }

// travelling is a command that may come from another broker.
type travelling interface {
	Command
	encode(w *writer)
}

// EncodeCommand writes a command for the controller in another broker. It fails for those that stay in their process.
func EncodeCommand(cmd Command) ([]byte, error) {
	t, ok := cmd.(travelling)
	if !ok {
		return nil, fmt.Errorf("a %T stays where it is", cmd)
	}
	w := newWriter()
	t.encode(w)
	return w.buf.Bytes(), nil
}

// DecodeCommand reads what EncodeCommand wrote. Request, Deadline and Heartbeat.Arrived are the receiver's to fill in. Errors wrap ErrMalformed, or
// ErrUnknownCode for a command of a newer version.
func DecodeCommand(b []byte) (Command, error) {
	r := newReader(b)
	f := r.fields()
	code := CommandCode(0)
	if f.next() {
		code = CommandCode(r.ranged(0, math.MaxUint16))
	}
	cmd := r.command(code, &f)
	f.close()
	if r.err == nil && r.left() > 0 {
		r.fail(fmt.Errorf("%d bytes after the command", r.left()))
	}
	if r.err != nil {
		return nil, r.err
	}
	return cmd, nil
}

func (r *reader) command(code CommandCode, f *fields) Command {
	switch code {
	case CodeRegister:
		return r.registerCommand(f)
	case CodeHeartbeat:
		return r.heartbeatCommand(f)
	case CodeVerified:
		return r.verifiedCommand(f)
	case CodeChangeISR:
		return r.changeISRCommand(f)
	case CodeElectLeaders:
		return r.electLeadersCommand(f)
	case CodeAllocateProducerIDs:
		return r.allocateCommand(f)
	case CodeCreateTopics:
		return r.createTopicsCommand(f)
	case CodeDeleteTopics:
		return r.deleteTopicsCommand(f)
	case CodeCreatePartitions:
		return r.createPartitionsCommand(f)
	case CodeAlterConfigs:
		return r.alterConfigsCommand(f)
	case CodeIncrementalAlterConfigs:
		return r.incrementalCommand(f)
	case CodeUpdateFeatures:
		return r.updateFeaturesCommand(f)
	case CodeDescribeQuorum:
		return &DescribeQuorum{}
	case CodePull:
		return r.pullCommand(f)
	case CodeMarkReplicas:
		return r.markReplicasCommand(f)
	case CodeAddVoter:
		cmd := &AddVoter{}
		f.voterKey(&cmd.Cluster, &cmd.Broker, &cmd.Directory)
		return cmd
	case CodeRemoveVoter:
		cmd := &RemoveVoter{}
		f.voterKey(&cmd.Cluster, &cmd.Broker, &cmd.Directory)
		return cmd
	case CodeAlterReassignments:
		return r.alterReassignmentsCommand(f)
	case CodeUnregister:
		cmd := &UnregisterBroker{}
		f.broker(&cmd.Broker)
		return cmd
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: command %d", ErrUnknownCode, code)
	}
	return nil
}

func (w *writer) command(code CommandCode, fields int) { w.open(Code(code), fields) }

// each writes a list.
func each[T any](w *writer, list []T, one func(*T)) {
	w.array(len(list))
	for i := range list {
		one(&list[i])
	}
}

// list reads a list of at most a number of arrays of fields; nil is an empty one.
func list[T any](r *reader, most int, one func(f *fields, to *T)) []T {
	n := r.array()
	if n > most {
		r.fail(fmt.Errorf("a list of %d, at most %d", n, most))
		return nil
	}
	var out []T
	for ; n > 0 && r.err == nil; n-- {
		var to T
		f := r.fields()
		one(&f, &to)
		f.close()
		out = append(out, to)
	}
	return out
}

func (w *writer) stringOrNil(s *string) {
	if s == nil {
		w.nil()
		return
	}
	w.string(*s)
}

func (r *reader) stringOrNil() *string {
	if r.null() || r.err != nil {
		return nil
	}
	s := r.string()
	return &s
}

func (f *fields) string(to *string) {
	if f.next() {
		*to = f.r.string()
	}
}

func (f *fields) bool(to *bool) {
	if f.next() {
		*to = f.r.bool()
	}
}

func (f *fields) uint(to *uint64) {
	if f.next() {
		*to = f.r.uint()
	}
}

func (f *fields) id(to *[16]byte) {
	if f.next() {
		*to = f.r.id()
	}
}

func (f *fields) broker(to *ident.BrokerID) {
	if f.next() {
		*to = f.r.broker()
	}
}

func (f *fields) brokerEpoch(to *ident.BrokerEpoch) {
	if f.next() {
		*to = ident.BrokerEpoch(f.r.int())
	}
}

// number reads a whole number from low to high.
func number[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16](f *fields, to *T, low, high int64) {
	if f.next() {
		*to = T(f.r.ranged(low, high))
	}
}

func (w *writer) held(list []Held) {
	each(w, list, func(h *Held) {
		w.array(2)
		w.bytes(h.Directory[:])
		each(w, h.Topics, func(t *HeldTopic) {
			w.array(3)
			w.bytes(t.Topic[:])
			w.partitions(t.Whole)
			w.partitions(t.Unverified)
		})
	})
}

// held reads at most replicasMax topics, of all directories.
func (r *reader) held() []Held {
	topics := replicasMax
	return list(r, detailsMax, func(f *fields, h *Held) {
		f.id((*[16]byte)(&h.Directory))
		if f.next() {
			h.Topics = list(r, topics, func(f *fields, t *HeldTopic) {
				f.id((*[16]byte)(&t.Topic))
				if f.next() {
					t.Whole = r.partitions()
				}
				if f.next() {
					t.Unverified = r.partitions()
				}
			})
		}
		topics -= len(h.Topics)
	})
}

func (w *writer) runs(list []Incarnation) {
	w.array(len(list))
	for i := range list {
		w.bytes(list[i][:])
	}
}

func (r *reader) runs() []Incarnation {
	n := r.array()
	if n > runsMax {
		r.fail(fmt.Errorf("a list of %d, at most %d", n, runsMax))
		return nil
	}
	var out []Incarnation
	for ; n > 0 && r.err == nil; n-- {
		out = append(out, r.id())
	}
	return out
}

func (w *writer) partitions(list []int32) {
	w.array(len(list))
	for _, p := range list {
		w.int(int64(p))
	}
}

// partitions reads partition numbers; no list is longer than what has arrived. An empty one is nil.
func (r *reader) partitions() []int32 {
	var out []int32
	for n := r.array(); n > 0 && r.err == nil; n-- {
		out = append(out, int32(r.ranged(0, math.MaxInt32)))
	}
	return out
}

func (f *fields) ref(to *ReplicaRef) {
	f.id((*[16]byte)(&to.Topic))
	number(f, &to.Partition, 0, math.MaxInt32)
}

func (w *writer) resource(r config.Resource) {
	w.int(int64(r.Type))
	w.string(r.Name)
}

func (f *fields) resource(to *config.Resource) {
	number(f, &to.Type, math.MinInt8, math.MaxInt8)
	f.string(&to.Name)
}
