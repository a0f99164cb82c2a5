package wire

import "github.com/troupe-broker/troupe/wire/ident"

// FetchResponse is the answer to a Fetch request, versions 4 to 18. The records
// themselves are not in it: they go from the log to the socket as regions, and the
// encoder only says where. Its slices belong to whoever fills it and can be reused
// once it is encoded.
type FetchResponse struct {
	ThrottleMillis int32
	Error          ErrorCode // from version 7
	SessionID      int32     // from version 7
	Topics         []FetchTopicResponse
	NodeEndpoints  []NodeEndpoint // from version 16: the brokers named by a CurrentLeader
}

// FetchTopicResponse is one topic of the answer.
type FetchTopicResponse struct {
	Name       []byte        // below version 13
	ID         ident.TopicID // from version 13
	Partitions []FetchPartitionResponse
}

// FetchPartitionResponse is one partition of the answer.
type FetchPartitionResponse struct {
	Partition            int32
	Error                ErrorCode
	HighWatermark        ident.Offset // NoOffset with most errors
	LastStableOffset     ident.Offset
	LogStartOffset       ident.Offset // from version 5
	Aborted              []AbortedTransaction
	AbortedNull          bool           // the list is null, as read uncommitted gets it
	PreferredReadReplica ident.BrokerID // from version 11; NoBroker: none
	RecordsSize          int32          // bytes of the partition's region; 0: no records
	DivergingEpoch       EpochEnd       // from version 12
	CurrentLeader        CurrentLeader  // from version 12
	SnapshotID           EpochEnd       // from version 12
}

// AbortedTransaction is a transaction whose records a client that reads committed
// ones skips: those of the producer from FirstOffset to the next abort marker.
type AbortedTransaction struct {
	ProducerID  ident.ProducerID
	FirstOffset ident.Offset
}

// EpochEnd is a leader epoch and the offset where it ends. It is left out unless
// Known.
type EpochEnd struct {
	Known     bool
	Epoch     ident.LeaderEpoch
	EndOffset ident.Offset
}

// Cut says that a region of Size bytes goes over the wire before dst[At:].
type Cut struct {
	At   int // place in the buffer that AppendTo returned
	Size int32
}

// AppendTo appends the body of the response in a version that is served, without
// its records, to dst, and to cuts one Cut for each partition with records, in the
// order of the partitions. On the wire the response is the bytes of dst with each
// region put in at its cut; [EndResponse] needs the sum of the regions.
func (r *FetchResponse) AppendTo(dst []byte, cuts []Cut, version int16) ([]byte, []Cut) {
	api, _ := Lookup(KeyFetch)
	flexible := api.IsFlexible(version)
	dst = appendInt32(dst, r.ThrottleMillis)
	if version >= fetchSessions {
		dst = appendInt16(dst, int16(r.Error))
		dst = appendInt32(dst, r.SessionID)
	}
	dst = appendArrayLen(dst, len(r.Topics), flexible)
	for i := range r.Topics {
		t := &r.Topics[i]
		if version >= fetchTopicIDs {
			dst = append(dst, t.ID[:]...)
		} else {
			dst = appendString(dst, t.Name, flexible)
		}
		dst = appendArrayLen(dst, len(t.Partitions), flexible)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			dst = p.appendHead(dst, version, flexible)
			if p.RecordsSize > 0 {
				cuts = append(cuts, Cut{At: len(dst), Size: p.RecordsSize})
			}
			if flexible {
				dst = p.appendTags(dst)
			}
		}
		dst = appendNoTags(dst, flexible)
	}
	switch {
	case version >= fetchNodeEndpoints && len(r.NodeEndpoints) > 0:
		dst = append(dst, 1)
		dst = appendNodeEndpoints(dst, r.NodeEndpoints)
	case flexible:
		dst = append(dst, 0)
	}
	return dst, cuts
}

// appendHead appends the partition up to its records, whose length it includes.
func (p *FetchPartitionResponse) appendHead(dst []byte, version int16, flexible bool) []byte {
	dst = appendInt32(dst, p.Partition)
	dst = appendInt16(dst, int16(p.Error))
	dst = appendInt64(dst, int64(p.HighWatermark))
	dst = appendInt64(dst, int64(p.LastStableOffset))
	if version >= fetchLogStart {
		dst = appendInt64(dst, int64(p.LogStartOffset))
	}
	if p.AbortedNull {
		dst = appendNullArray(dst, flexible)
	} else {
		dst = appendArrayLen(dst, len(p.Aborted), flexible)
		for i := range p.Aborted {
			a := &p.Aborted[i]
			dst = appendInt64(dst, int64(a.ProducerID))
			dst = appendInt64(dst, int64(a.FirstOffset))
			dst = appendNoTags(dst, flexible)
		}
	}
	if version >= fetchRack {
		dst = appendInt32(dst, int32(p.PreferredReadReplica))
	}
	// Records are never null: clients take null for a broken broker, and an array
	// of bytes has the length of a region in the same form as an array's.
	return appendArrayLen(dst, int(p.RecordsSize), flexible)
}

// appendTags appends the tagged fields that follow the records.
func (p *FetchPartitionResponse) appendTags(dst []byte) []byte {
	const epochSize = 4 + 8 + 1
	at := len(dst)
	dst = append(dst, 0)
	if p.DivergingEpoch.Known {
		dst[at]++
		dst = append(dst, 0, epochSize)
		dst = appendInt32(dst, int32(p.DivergingEpoch.Epoch))
		dst = appendInt64(dst, int64(p.DivergingEpoch.EndOffset))
		dst = append(dst, 0)
	}
	if p.CurrentLeader.Known {
		dst[at]++
		dst = appendCurrentLeader(dst, 1, p.CurrentLeader)
	}
	if p.SnapshotID.Known {
		dst[at]++
		dst = append(dst, 2, epochSize)
		dst = appendInt64(dst, int64(p.SnapshotID.EndOffset))
		dst = appendInt32(dst, int32(p.SnapshotID.Epoch))
		dst = append(dst, 0)
	}
	return dst
}
