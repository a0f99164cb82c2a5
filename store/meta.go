package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// metaFile is the identity of a data directory: Kafka's properties, and two of
// ours. (MetaProperties.java)
const (
	metaFile    = "meta.properties"
	metaVersion = 1
	keyVersion  = "version"
	keyCluster  = "cluster.id"
	keyNode     = "node.id"
	keyDir      = "directory.id"
	keyRaft     = "troupe.raft.node.id"
	keyRaftLog  = "troupe.raft.log"
	keyChecksum = "troupe.checksum"
)

// Meta is the identity of a data directory, kept in meta.properties.
type Meta struct {
	Cluster   ident.ClusterID // empty until the broker has joined or formed one
	Broker    ident.BrokerID
	Directory ident.DirectoryID
	Node      ident.NodeID // Raft node id
	// RaftLog: the directory has a Raft log; one that is missing was lost.
	RaftLog bool
}

// encodeMeta writes the properties.
func encodeMeta(m Meta) []byte {
	text := fmt.Appendf(nil, "%s=%d\n", keyVersion, metaVersion)
	if m.Cluster != "" {
		text = fmt.Appendf(text, "%s=%s\n", keyCluster, m.Cluster)
	}
	text = fmt.Appendf(text, "%s=%d\n%s=%s\n%s=%s\n", keyNode, m.Broker, keyDir, m.Directory, keyRaft, m.Node)
	if m.RaftLog {
		text = fmt.Appendf(text, "%s=true\n", keyRaftLog)
	}
	return fmt.Appendf(text, "%s=%08x\n", keyChecksum, crc32.Checksum(text, castagnoli))
}

// decodeMeta reads the properties. A file without our keys is Kafka's own: it has
// no checksum and no Raft node id (Node is 0 then).
func decodeMeta(b []byte) (Meta, error) {
	text, sum, sealed := cutChecksum(string(b))
	if sealed && sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli)) {
		return Meta{}, fmt.Errorf("the checksum does not match: %w", ErrFormat)
	}
	props := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if _, twice := props[key]; !ok || twice {
			return Meta{}, fmt.Errorf("line %.60q is no property, or a second one: %w", line, ErrFormat)
		}
		props[key] = value
	}
	return metaOf(props, sealed)
}

// cutChecksum splits the last line off, if it is the checksum.
func cutChecksum(text string) (rest, sum string, ok bool) {
	i := strings.LastIndex(text, keyChecksum+"=")
	if i < 0 || (i > 0 && text[i-1] != '\n') {
		return text, "", false
	}
	return text[:i], strings.TrimSuffix(text[i+len(keyChecksum)+1:], "\n"), true
}

func metaOf(props map[string]string, sealed bool) (Meta, error) {
	version, err := strconv.Atoi(props[keyVersion])
	switch {
	case err != nil:
		return Meta{}, fmt.Errorf("%s=%.20q: %w", keyVersion, props[keyVersion], ErrFormat)
	case version > metaVersion:
		return Meta{}, fmt.Errorf("%s=%d, this broker reads %d: %w", keyVersion, version, metaVersion, ErrNewerFormat)
	case version < metaVersion:
		return Meta{}, fmt.Errorf("%s=%d is of a Kafka with ZooKeeper: %w", keyVersion, version, ErrFormat)
	}
	m := Meta{Cluster: ident.ClusterID(props[keyCluster])}
	broker, err := strconv.ParseInt(props[keyNode], 10, 32)
	if err != nil || broker < 0 {
		return Meta{}, fmt.Errorf("%s=%.20q: %w", keyNode, props[keyNode], ErrFormat)
	}
	m.Broker = ident.BrokerID(broker)
	if m.Directory, err = ident.ParseDirectoryID(props[keyDir]); err != nil || m.Directory.IsReserved() {
		return Meta{}, fmt.Errorf("%s=%.40q: %w", keyDir, props[keyDir], ErrFormat)
	}
	if !sealed {
		for key := range props {
			if strings.HasPrefix(key, "troupe.") {
				return Meta{}, fmt.Errorf("%s without %s: %w", key, keyChecksum, ErrFormat)
			}
		}
		return m, nil
	}
	node, err := strconv.ParseUint(props[keyRaft], 16, 64)
	if err != nil || node == 0 {
		return Meta{}, fmt.Errorf("%s=%.40q: %w", keyRaft, props[keyRaft], ErrFormat)
	}
	m.Node = ident.NodeID(node)
	m.RaftLog = props[keyRaftLog] == "true"
	return m, nil
}

// newNodeID draws a Raft node id, never 0.
func newNodeID(rand io.Reader) (ident.NodeID, error) {
	var b [8]byte
	for {
		if _, err := io.ReadFull(rand, b[:]); err != nil {
			return 0, fmt.Errorf("draw a Raft node id: %w", err)
		}
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return ident.NodeID(id), nil
		}
	}
}

// newDirectoryID draws a directory id, in the form of a random Uuid.
func newDirectoryID(rand io.Reader) (ident.DirectoryID, error) {
	var id ident.DirectoryID
	for {
		if _, err := io.ReadFull(rand, id[:]); err != nil {
			return id, fmt.Errorf("draw a directory id: %w", err)
		}
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		// Kafka avoids ids whose text begins with a dash: they read as flags.
		if !id.IsReserved() && id.String()[0] != '-' {
			return id, nil
		}
	}
}

// markLine is a line of the recovery point checkpoint, and of the log start one.
type markLine struct {
	partition ident.TopicPartition
	offset    ident.Offset
	strict    bool          // "strict, confirmed"; only in the sealed copy of the marks
	topic     ident.TopicID // only in sealed copies; zero: not said
}

// markColumns says what a checkpoint has beside Kafka's three columns. The topic id
// keeps what is written of a deleted topic from another that has its name now.
type markColumns struct{ flag, topic bool }

// encodeMarks writes Kafka's checkpoint text, sorted, and the further columns.
// (OffsetCheckpointFile.java)
func encodeMarks(lines []markLine, more markColumns) []byte {
	slices.SortFunc(lines, func(a, b markLine) int { return a.partition.Compare(b.partition) })
	text := fmt.Appendf(nil, "0\n%d\n", len(lines))
	for _, m := range lines {
		text = fmt.Appendf(text, "%s %d %d", m.partition.Topic, m.partition.Partition, m.offset)
		if more.flag {
			flag := 0
			if m.strict {
				flag = 1
			}
			text = fmt.Appendf(text, " %d", flag)
		}
		if more.topic {
			text = fmt.Appendf(text, " %s", m.topic)
		}
		text = append(text, '\n')
	}
	return text
}

// decodeMarks reads what encodeMarks wrote.
func decodeMarks(text []byte, more markColumns) ([]markLine, error) {
	lines, err := checkpointLines(text)
	if err != nil {
		return nil, err
	}
	marks := make([]markLine, 0, len(lines))
	for _, line := range lines {
		m, err := parseMark(line, more)
		if err != nil {
			return nil, err
		}
		marks = append(marks, m)
	}
	return marks, nil
}

func parseMark(line string, more markColumns) (m markLine, err error) {
	fields := strings.Split(line, " ")
	want := 3
	if more.flag {
		want++
	}
	if more.topic {
		want++
	}
	bad := func(err error) (markLine, error) {
		return markLine{}, fmt.Errorf("line %.80q: %w", line, errors.Join(ErrFormat, err))
	}
	if len(fields) != want || fields[0] == "" {
		return bad(nil)
	}
	partition, err := strconv.ParseInt(fields[1], 10, 32)
	if err != nil || partition < 0 {
		return bad(err)
	}
	offset, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || offset < 0 {
		return bad(err)
	}
	m = markLine{partition: ident.TopicPartition{Topic: fields[0], Partition: int32(partition)}, offset: ident.Offset(offset)}
	if more.flag {
		if fields[3] != "0" && fields[3] != "1" {
			return bad(nil)
		}
		m.strict = fields[3] == "1"
	}
	if more.topic {
		if m.topic, err = ident.ParseTopicID(fields[want-1]); err != nil {
			return bad(err)
		}
	}
	return m, nil
}

// of tells whether the line is of the log that an entry stands for. A line that names
// no topic is of whatever has the name. A log whose identity could not be read takes
// that of the line, so that the line outlives the next checkpoint.
func (m *markLine) of(e *entry) bool {
	if e.topic.IsZero() {
		e.topic = m.topic
	}
	return m.topic.IsZero() || m.topic == e.topic
}
