package gossip

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Limits of what a broker tells about itself.
const (
	metaBytesMax   = 512 // memberlist's MetaMaxSize: it panics beyond that
	clientsMax     = 16
	memberFields   = 12 // of format 1
	memberFormat   = 1
	flagLeaving    = 1
	namePrefixSize = 8 // bytes of the incarnation in a name
)

var (
	// ErrTooLong is what Start and Announce return for a Member that does not fit into 512 bytes.
	ErrTooLong = errors.New("TRP-4201: what the broker tells others is too long")
	// errMember is wrapped by the reasons why a Member of somebody else cannot be read.
	errMember = errors.New("malformed gossip member")
)

// Member is what a broker tells all others about itself. It is a value: whoever gets one must not change what its slices hold.
type Member struct {
	Broker      ident.BrokerID
	Incarnation [16]byte // random, one per run of the process; never zero

	Cluster ident.ClusterID // "" while the broker has none
	Expect  int32           // --bootstrap-expect; 0: it does not found a cluster

	Node      ident.NodeID // of its directory, for the metadata quorum
	Directory ident.DirectoryID
	Clients   []string // advertised addresses for clients, LISTENER://host:port; at most 16
	Peer      string   // host:port of its peer port, as others shall dial it
	Rack      string
	Leaving   bool // it stops on purpose

	// Address is where its gossip comes from. It is not part of what is told: memberlist carries it.
	Address netip.AddrPort
}

// Name is what memberlist calls this incarnation of the broker.
func (m *Member) Name() string {
	return "b" + m.Broker.String() + "-" + hex.EncodeToString(m.Incarnation[:namePrefixSize])
}

func (m *Member) equal(o *Member) bool {
	return m.Broker == o.Broker && m.Incarnation == o.Incarnation && m.Cluster == o.Cluster && m.Expect == o.Expect &&
		m.Node == o.Node && m.Directory == o.Directory && slices.Equal(m.Clients, o.Clients) && m.Peer == o.Peer && m.Rack == o.Rack &&
		m.Leaving == o.Leaving && m.Address == o.Address
}

// foreign says whether the two are members of different clusters. Who has no cluster is foreign to nobody.
func (m *Member) foreign(o *Member) bool {
	return m.Cluster != "" && o.Cluster != "" && m.Cluster != o.Cluster
}

// encode makes the msgpack array
//
//	[format, broker, incarnation, cluster, expect, nil, node, directory, [client…], peer, rack, flags]
//
// which grows at its end; the nil is the place of what is told over links now. Readers skip a tail they do not know. It fails with ErrTooLong, and with errMember for what no reader would accept.
func (m *Member) encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	flags := uint64(0)
	if m.Leaving {
		flags |= flagLeaving
	}
	err := errors.Join(
		enc.EncodeArrayLen(memberFields), enc.EncodeUint(memberFormat),
		enc.EncodeInt(int64(m.Broker)), enc.EncodeBytes(m.Incarnation[:]), enc.EncodeString(string(m.Cluster)), enc.EncodeInt(int64(m.Expect)),
		enc.EncodeNil(), enc.EncodeUint(uint64(m.Node)), enc.EncodeBytes(m.Directory[:]), enc.EncodeArrayLen(len(m.Clients)),
	)
	for _, client := range m.Clients {
		err = errors.Join(err, enc.EncodeString(client))
	}
	err = errors.Join(err, enc.EncodeString(m.Peer), enc.EncodeString(m.Rack), enc.EncodeUint(flags))
	if err != nil {
		return nil, fmt.Errorf("writing msgpack into memory: %w", err)
	}
	if buf.Len() > metaBytesMax {
		clients := 0
		for _, client := range m.Clients {
			clients += len(client)
		}
		return nil, fmt.Errorf("%w: %d bytes, gossip carries %d. Of these the advertised addresses for clients take %d, the peer address %d, the rack %d, the cluster id %d: shorten one of them",
			ErrTooLong, buf.Len(), metaBytesMax, clients, len(m.Peer), len(m.Rack), len(m.Cluster))
	}
	return buf.Bytes(), nil
}

func (m *Member) check() error {
	switch {
	case m.Broker < 0:
		return fmt.Errorf("%w: broker id %d", errMember, m.Broker)
	case m.Incarnation == [16]byte{}:
		return fmt.Errorf("%w: no incarnation", errMember)
	case m.Expect < 0:
		return fmt.Errorf("%w: expects %d brokers", errMember, m.Expect)
	case len(m.Clients) > clientsMax:
		return fmt.Errorf("%w: %d addresses for clients, %d are the limit", errMember, len(m.Clients), clientsMax)
	}
	return nil
}

// decodeMember reads what another broker tells. The result holds copies only.
func decodeMember(meta []byte) (Member, error) {
	if len(meta) > metaBytesMax {
		return Member{}, fmt.Errorf("%w: %d bytes", errMember, len(meta))
	}
	r := metaReader{src: bytes.NewReader(meta)}
	r.dec = msgpack.NewDecoder(r.src)
	if n := r.array(); r.err == nil && n < memberFields {
		r.fail(fmt.Errorf("%d fields", n))
	}
	if format := r.uint(); r.err == nil && format != memberFormat {
		r.fail(fmt.Errorf("format %d, which only a newer version writes", format))
	}
	var m Member
	m.Broker = ident.BrokerID(r.int32())
	r.fixed(m.Incarnation[:])
	m.Cluster = ident.ClusterID(r.string())
	m.Expect = r.int32()
	r.skip()
	m.Node = ident.NodeID(r.uint())
	r.fixed(m.Directory[:])
	n := r.array()
	if n > clientsMax {
		r.fail(errors.New("too many addresses for clients"))
	}
	for range n {
		if r.err != nil {
			break
		}
		m.Clients = append(m.Clients, r.string())
	}
	m.Peer, m.Rack = r.string(), r.string()
	m.Leaving = r.uint()&flagLeaving != 0
	if r.err != nil {
		return Member{}, r.err
	}
	return m, m.check()
}

// metaReader reads msgpack of somebody else. The first problem sticks. No allocation exceeds what the input holds.
type metaReader struct {
	src *bytes.Reader
	dec *msgpack.Decoder
	err error
}

func (r *metaReader) fail(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%w: %w", errMember, err)
	}
}

func (r *metaReader) array() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	if err == nil && (n < 0 || n > r.src.Len()) {
		err = errors.New("an array longer than its bytes")
	}
	r.fail(err)
	if r.err != nil {
		return 0
	}
	return n
}

func (r *metaReader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeUint64()
	r.fail(err)
	return n
}

func (r *metaReader) int32() int32 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeInt64()
	if err == nil && int64(int32(n)) != n {
		err = errors.New("the number " + strconv.FormatInt(n, 10))
	}
	r.fail(err)
	return int32(n)
}

// length reads the length of a string or bin; -1 is nil.
func (r *metaReader) length() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeBytesLen()
	if err == nil && n > r.src.Len() {
		err = errors.New("a text longer than its bytes")
	}
	r.fail(err)
	if r.err != nil {
		return 0
	}
	return n
}

func (r *metaReader) string() string {
	n := r.length()
	if n <= 0 {
		return ""
	}
	b := make([]byte, n)
	r.fail(r.dec.ReadFull(b))
	return string(b)
}

func (r *metaReader) fixed(to []byte) {
	n := r.length()
	if r.err == nil && n != len(to) {
		r.fail(fmt.Errorf("an id of %d bytes", n))
	}
	if r.err == nil {
		r.fail(r.dec.ReadFull(to))
	}
}

// skip passes over one value of any kind.
func (r *metaReader) skip() {
	if r.err == nil {
		r.fail(r.dec.Skip())
	}
}
