package config

import (
	"fmt"
	"slices"
	"strconv"
)

// BrokerValues is every honoured broker key that is no topic's default, as a plain value: what the broker wires.
type BrokerValues struct {
	BrokerID              int32
	Rack                  string
	DataDir               string
	Listeners             []Listener // to open
	Advertised            []Listener // to tell clients, one for each of Listeners, in its order
	MetricsListen         string     // host:port; empty: none
	HeartbeatMs           int64
	SessionMs             int64
	SnapshotBytes         int64 // of metadata records between snapshots
	SendBufferBytes       int32 // -1: the kernel's choice
	ReceiveBufferBytes    int32 // -1: the kernel's choice
	RequestBytesMax       int32
	QueuedRequestBytesMax int64 // -1: by the machine
	ConnectionsMax        int32
	ConnectionsPerIPMax   int32
	ConnectionIdleMs      int64 // -1: for ever
	FetchBytesMax         int32
	FetchSessionsMax      int32
	RackAware             bool // send consumers to replicas in their rack
	DescribePartitionsMax int32
	NumPartitions         int32
	ReplicationFactor     int16
	AutoCreateTopics      bool
	DeleteTopics          bool
	BalanceLeaders        bool  // move leaderships back to preferred replicas
	BalanceSeconds        int64 // between two looks at them
	RetentionCheckMs      int64
	ProducerIDExpiryMs    int64
	ProducerIDCheckMs     int64
	ValidationDepth       string // header, default or full
	Cleaner               CleanerValues
	Scrub                 ScrubValues
	Groups                GroupValues
	Peer                  PeerValues
	ReplicaLagMs          int64 // replica.lag.time.max.ms
	ReplicaFetchBytesMax  int32 // of one ask
	LeaderThrottle        int64 // bytes per second; math.MaxInt64: no limit
	FollowerThrottle      int64 // the same
	ReplicaBackoffMs      int64 // longest pause between asks that are refused
}

// BrokerOf resolves all honoured broker keys and checks what only shows when keys are held together. The error is an *Error with code TRP-1003 or
// TRP-1007.
func BrokerOf(s Stack) (BrokerValues, error) {
	v := BrokerValues{
		Rack:                  s.BrokerText("broker.rack"),
		DataDir:               s.BrokerText("log.dir"),
		MetricsListen:         s.BrokerText("metrics.listen"),
		HeartbeatMs:           s.BrokerInt("broker.heartbeat.interval.ms"),
		ReplicaLagMs:          s.BrokerInt("replica.lag.time.max.ms"),
		ReplicaFetchBytesMax:  int32(s.BrokerInt("replica.fetch.max.bytes")),
		LeaderThrottle:        s.BrokerInt("leader.replication.throttled.rate"),
		FollowerThrottle:      s.BrokerInt("follower.replication.throttled.rate"),
		ReplicaBackoffMs:      s.BrokerInt("replica.fetch.backoff.ms"),
		SessionMs:             s.BrokerInt("broker.session.timeout.ms"),
		SnapshotBytes:         s.BrokerInt("metadata.log.max.record.bytes.between.snapshots"),
		SendBufferBytes:       int32(s.BrokerInt("socket.send.buffer.bytes")),
		ReceiveBufferBytes:    int32(s.BrokerInt("socket.receive.buffer.bytes")),
		RequestBytesMax:       int32(s.BrokerInt("socket.request.max.bytes")),
		QueuedRequestBytesMax: s.BrokerInt("queued.max.request.bytes"),
		ConnectionsMax:        int32(s.BrokerInt("max.connections")),
		ConnectionsPerIPMax:   int32(s.BrokerInt("max.connections.per.ip")),
		ConnectionIdleMs:      s.BrokerInt("connections.max.idle.ms"),
		FetchBytesMax:         int32(s.BrokerInt("fetch.max.bytes")),
		FetchSessionsMax:      int32(s.BrokerInt("max.incremental.fetch.session.cache.slots")),
		DescribePartitionsMax: int32(s.BrokerInt("max.request.partition.size.limit")),
		RackAware:             s.BrokerText("replica.selector.class") == RackAwareSelector,
		NumPartitions:         int32(s.BrokerInt("num.partitions")),
		ReplicationFactor:     int16(min(s.BrokerInt("default.replication.factor"), 1<<15-1)),
		AutoCreateTopics:      s.BrokerBool("auto.create.topics.enable"),
		DeleteTopics:          s.BrokerBool("delete.topic.enable"),
		BalanceLeaders:        s.BrokerBool("auto.leader.rebalance.enable"),
		BalanceSeconds:        s.BrokerInt("leader.imbalance.check.interval.seconds"),
		RetentionCheckMs:      s.BrokerInt("log.retention.check.interval.ms"),
		ProducerIDExpiryMs:    s.BrokerInt("producer.id.expiration.ms"),
		ProducerIDCheckMs:     s.BrokerInt("producer.id.expiration.check.interval.ms"),
		ValidationDepth:       s.BrokerText("validation.depth"),
		Cleaner:               cleanerOf(s),
		Scrub:                 scrubOf(s),
	}
	if dirs := s.value(brokerTable, "log.dirs").Words; len(dirs) == 1 {
		v.DataDir = dirs[0]
	}
	if err := v.identify(s); err != nil {
		return BrokerValues{}, err
	}
	if err := v.listen(s); err != nil {
		return BrokerValues{}, err
	}
	var err error
	if v.Groups, err = groupsOf(s); err != nil {
		return BrokerValues{}, err
	}
	if v.Peer, err = peersOf(s); err != nil {
		return BrokerValues{}, err
	}
	if v.HeartbeatMs >= v.SessionMs {
		return BrokerValues{}, &Error{
			Code: Conflict, Key: "broker.heartbeat.interval.ms", Value: strconv.FormatInt(v.HeartbeatMs, 10),
			Problem: fmt.Sprintf("it must be below broker.session.timeout.ms, which is %d", v.SessionMs),
		}
	}
	return v, nil
}

// identify finds the broker's number under its two names.
func (v *BrokerValues) identify(s Stack) error {
	node, old := s.BrokerInt("node.id"), s.BrokerInt("broker.id")
	if given, ok := s.Static.Get("node.id"); old >= 0 {
		if ok && node != old {
			return &Error{Code: Conflict, Key: "node.id", Value: given, Problem: fmt.Sprintf("broker.id is the same thing and says %d", old)}
		}
		node = old
	}
	v.BrokerID = int32(node)
	return nil
}

// listen decides which listeners to open and what to tell clients about them.
func (v *BrokerValues) listen(s Stack) error {
	text := s.BrokerText("listeners")
	all, _ := parseListeners(s.value(brokerTable, "listeners").Words)
	protocolOf, _ := parseProtocols(s.value(brokerTable, "listener.security.protocol.map").Words)
	controllers := s.value(brokerTable, "controller.listener.names").Words
	for _, l := range all {
		if slices.Contains(controllers, l.Name) {
			continue
		}
		if l.Name == PeerListener {
			return &Error{Code: Conflict, Key: "listeners", Value: text, Problem: "a listener cannot be called " + PeerListener + ": brokers are registered with their peer port under that name; peer.listen opens it"}
		}
		l.Protocol = protocolOf[l.Name]
		switch l.Protocol {
		case "PLAINTEXT":
		case "":
			return &Error{Code: Conflict, Key: "listeners", Value: text, Problem: "listener.security.protocol.map has no protocol for the listener " + l.Name}
		default:
			return &Error{Code: RefusedKey, Key: "listeners", Value: text, Problem: "listener " + l.Name + " needs " + l.Protocol + ", which does not exist yet: use PLAINTEXT on a network you trust"}
		}
		v.Listeners = append(v.Listeners, l)
	}
	if len(v.Listeners) == 0 {
		return &Error{Code: Conflict, Key: "listeners", Value: text, Problem: "it has no listener for clients"}
	}
	return v.advertise(s)
}

func (v *BrokerValues) advertise(s Stack) error {
	text := s.BrokerText("advertised.listeners")
	told, _ := parseListeners(s.value(brokerTable, "advertised.listeners").Words)
	for _, l := range v.Listeners {
		i := slices.IndexFunc(told, func(t Listener) bool { return t.Name == l.Name })
		if i < 0 && wildcard(l.Host) {
			return &Error{Code: Conflict, Key: "listeners", Value: s.BrokerText("listeners"), Problem: fmt.Sprintf(
				"it opens every interface, and clients must be told one address: set advertised.listeners=%s://HOST:%d, or start with --advertise HOST:%d", l.Name, l.Port, l.Port)}
		}
		if i < 0 {
			v.Advertised = append(v.Advertised, l)
			continue
		}
		if wildcard(told[i].Host) {
			return &Error{Code: Conflict, Key: "advertised.listeners", Value: text, Problem: "clients cannot connect to " + strconv.Quote(told[i].Host) + ": name a host they can reach"}
		}
		v.Advertised = append(v.Advertised, Listener{Name: l.Name, Host: told[i].Host, Port: told[i].Port, Protocol: l.Protocol})
	}
	return nil
}

func wildcard(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
