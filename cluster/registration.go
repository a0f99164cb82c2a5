package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// registerBroker gives a run of a broker its epoch. In the same batch it leaves the ISRs of its former run, so that each run leads under leader epochs of
// its own, and the replicas that lost records leave ISR and ELR, before anybody can elect them.
func (c *Controller) registerBroker(now Now, cmd *RegisterBroker) decision {
	if err := c.checkRegistration(now, cmd); err != nil {
		return refused(err)
	}
	old, known := c.next.Broker(cmd.Broker)
	if known && old.Incarnation == cmd.Incarnation {
		return decision{body: &RegisterBrokerReply{Epoch: old.Epoch}}
	}
	epoch := ident.BrokerEpoch(c.last + 1)
	records := []Record{&RegisterBrokerRecord{Broker: Broker{
		ID: cmd.Broker, Epoch: epoch, Incarnation: cmd.Incarnation, Endpoints: slices.Clone(cmd.Endpoints), Directories: slices.Clone(cmd.Directories),
		Rack: cmd.Rack, Features: slices.Clone(cmd.Features), Fenced: true,
	}}}
	if known {
		records = append(records, c.comeBack(old, cmd)...)
	}
	c.sessions[cmd.Broker] = session{heard: now.Mono, wall: ident.NoTimestamp, level: ident.NoTimestamp}
	return decision{records: records, body: &RegisterBrokerReply{Epoch: epoch}}
}

func (c *Controller) checkRegistration(now Now, cmd *RegisterBroker) *Error {
	switch {
	case cmd.ClusterID != c.next.clusterID:
		return refuse(wire.InconsistentClusterID, "broker %d belongs to cluster %q, this is cluster %q: it has another cluster's data directory", cmd.Broker, cmd.ClusterID, c.next.clusterID)
	case cmd.Broker < 0:
		return refuse(wire.InvalidRegistration, "broker id %d is negative", cmd.Broker)
	case len(cmd.Endpoints) == 0:
		return refuse(wire.InvalidRegistration, "broker %d has no advertised address", cmd.Broker)
	case cmd.Incarnation == Incarnation{}:
		return refuse(wire.InvalidRegistration, "broker %d has no incarnation id", cmd.Broker)
	}
	for _, f := range c.next.features {
		if !serves(cmd.Features, f.Name, f.Level) {
			return refuse(wire.UnsupportedVersion, "the cluster uses %s level %d, which broker %d does not serve", f.Name, f.Level, cmd.Broker)
		}
	}
	old, known := c.next.Broker(cmd.Broker)
	if s := c.sessions[cmd.Broker]; known && !old.Fenced && old.Incarnation != cmd.Incarnation && cmd.Broker != c.options.Broker && s.alive && !c.silent(now, old) && !c.hungUp(old) {
		return refuse(wire.DuplicateBrokerRegistration, "another process is registered as broker %d and alive; give each broker its own id", cmd.Broker)
	}
	return nil
}

func serves(ranges []FeatureRange, name string, level int16) bool {
	for _, r := range ranges {
		if r.Name == name {
			return r.Min <= level && level <= r.Max
		}
	}
	return false
}

// comeBack judges what a new run of a broker says of its replicas. What it does not name is lost: set aside as a stray, out of reach, or gone with its
// directory; and it makes no difference here whether it was ever made, since no leader counts on a replica that never reported. What it says is whole is so,
// unless that rests on a clean marker of another run than the last one that is known here, or on nothing but the run before, which died without having told
// its verdict: that one may have cut what a power cut had left unreadable, and who finds the rest sound does not know of it. Nor is a replica whole that was
// kept in another directory, or anything in directories that the last run did not have: a backup of them, or a copy that was put in their place.
func (c *Controller) comeBack(old *Broker, cmd *RegisterBroker) []Record {
	held := cmd.held()
	strange := !slices.Contains(cmd.Runs, old.Incarnation)
	unclean := cmd.CleanEpoch != 0 && cmd.CleanEpoch != old.Epoch
	live := c.next.live()
	s := situation{led: c.led, gone: cmd.Broker, live: func(b ident.BrokerID) bool { return b != cmd.Broker && live(b) }}
	var records []Record
	for t := range c.next.Topics() {
		known := false
		for i, p := range t.Partitions {
			at := slices.Index(p.Replicas, cmd.Broker)
			if at < 0 {
				continue
			}
			if !known {
				s.rules, known = c.rules(c.next, t.Name), true
			}
			key := partitionKey{t.ID, int32(i)}
			h, found := held[key]
			moved := len(p.Directories) > 0 && !p.Directories[at].IsZero() && p.Directories[at] != h.directory && (found || !slices.Contains(cmd.Directories, p.Directories[at]))
			s.lost = !found || moved || strange || (unclean || slices.Contains(p.Unverified, cmd.Broker)) && !h.unverified
			to := settle(p, s, func(to *Partition) {
				to.Unverified = without(to.Unverified, cmd.Broker)
				if s.lost || h.unverified || p.awaits(cmd.Broker) {
					to.Unverified = append(to.Unverified, cmd.Broker)
				}
				to.unmark(cmd.Broker) // what its former run said
				to.Reports = slices.DeleteFunc(slices.Clone(to.Reports), func(r Report) bool { return r.Broker == cmd.Broker })
				if moved {
					to.Directories = slices.Clone(to.Directories)
					if to.Directories[at] = h.directory; !found {
						to.Directories[at] = onlyDirectory(cmd.Directories)
					}
				}
			})
			records = appendChange(records, t, int32(i), to)
		}
	}
	return records
}

// awaits tells whether a partition without a leader, and without anybody who is known to have everything, has to hear how far a replica reaches. What its
// former run has said of that is over, also when nothing was lost since.
func (p *Partition) awaits(b ident.BrokerID) bool {
	return p.Leader == ident.NoBroker && len(p.ISR)+len(p.ELR) == 0 && slices.Contains(p.LastKnownELR, b)
}

// heldReplica is what a registration says of one replica.
type heldReplica struct {
	directory  ident.DirectoryID
	unverified bool
}

// held lists the replicas that a registration names, in directories that are online. Of one that is named twice, the doubt counts.
func (cmd *RegisterBroker) held() map[partitionKey]heldReplica {
	all := make(map[partitionKey]heldReplica) // read by key only
	for i := range cmd.Held {
		h := &cmd.Held[i]
		if !slices.Contains(cmd.Directories, h.Directory) {
			continue
		}
		for j := range h.Topics {
			t := &h.Topics[j]
			for _, p := range t.Whole {
				all[partitionKey{t.Topic, p}] = heldReplica{directory: h.Directory}
			}
			for _, p := range t.Unverified {
				all[partitionKey{t.Topic, p}] = heldReplica{directory: h.Directory, unverified: true}
			}
		}
	}
	return all
}

// onlyDirectory is where a replica must be when there is no choice.
func onlyDirectory(online []ident.DirectoryID) ident.DirectoryID {
	if len(online) == 1 {
		return online[0]
	}
	return ident.DirectoryID{}
}

// verified takes in what a broker found out about replicas that it had named: they may be elected from now on, or they lost records after all. That counts also of
// one that was named as whole, as long as it is in the ELR: it leaves it. In the ISR it is only when its leader has brought it up to date since.
func (c *Controller) verified(cmd *Verified) decision {
	if err := c.registered(cmd.Broker, cmd.Epoch); err != nil {
		return refused(err)
	}
	var records []Record
	seen := make(map[partitionKey]bool, len(cmd.Replicas)) // read by key only
	for i := range cmd.Replicas {
		v := &cmd.Replicas[i]
		t, ok := c.next.TopicByID(v.Topic)
		if !ok || v.Partition < 0 || int(v.Partition) >= len(t.Partitions) || seen[partitionKey{v.Topic, v.Partition}] {
			continue // deleted meanwhile, or said twice
		}
		seen[partitionKey{v.Topic, v.Partition}] = true
		p := t.Partitions[v.Partition]
		if !slices.Contains(p.Unverified, cmd.Broker) && (v.Whole || !slices.Contains(p.ELR, cmd.Broker)) {
			continue // known already
		}
		s := situation{led: c.led, rules: c.rules(c.next, t.Name), live: c.next.live(), gone: ident.NoBroker}
		if !v.Whole && len(p.Replicas) > 1 {
			s.gone, s.lost = cmd.Broker, true
		}
		to := settle(p, s, func(to *Partition) {
			to.Unverified = without(to.Unverified, cmd.Broker)
			if to.Leader == ident.NoBroker && slices.Contains(to.LastKnownELR, cmd.Broker) {
				to.Reports = append(slices.Clone(to.Reports), Report{Broker: cmd.Broker, LastEpoch: v.LastEpoch, End: v.End})
			}
		})
		records = appendChange(records, t, v.Partition, to)
	}
	return decision{records: records, body: &VerifiedReply{}}
}
