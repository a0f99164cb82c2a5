package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/troupe-broker/troupe/wire/ident"
)

// partitionMetaFile says which topic a partition directory belongs to. It has
// Kafka's two lines and a third that Kafka does not read, with a checksum.
// (PartitionMetadataFile.java)
const partitionMetaFile = "partition.metadata"

func encodePartitionMeta(id ident.TopicID) []byte {
	return seal(fmt.Appendf(nil, "version: 0\ntopic_id: %s\n", id))
}

// decodePartitionMeta reads the file; one without the checksum line is Kafka's.
func decodePartitionMeta(b []byte) (ident.TopicID, error) {
	if strings.Contains(string(b), sealPrefix) {
		text, err := unseal(b)
		if err != nil {
			return ident.TopicID{}, err
		}
		b = text
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 2 {
		return ident.TopicID{}, fmt.Errorf("%d lines in place of 2: %w", len(lines), ErrFormat)
	}
	version, ok := strings.CutPrefix(lines[0], "version: ")
	if n, err := strconv.Atoi(version); !ok || err != nil || n != 0 {
		if ok && err == nil && n > 0 {
			return ident.TopicID{}, fmt.Errorf("version %d, this broker reads 0: %w", n, ErrNewerFormat)
		}
		return ident.TopicID{}, fmt.Errorf("line %.40q is no version: %w", lines[0], ErrFormat)
	}
	text, ok := strings.CutPrefix(lines[1], "topic_id: ")
	if !ok {
		return ident.TopicID{}, fmt.Errorf("line %.40q is no topic id: %w", lines[1], ErrFormat)
	}
	id, err := ident.ParseTopicID(text)
	if err == nil && id.IsZero() {
		err = errors.New("the topic id is zero")
	}
	if err != nil {
		return ident.TopicID{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return id, nil
}

// readPartitionMeta reads the topic id of a partition directory.
func readPartitionMeta(fs FS, dir string) (ident.TopicID, error) {
	b, err := readFile(fs, filepath.Join(dir, partitionMetaFile))
	if errors.Is(err, syscall.EISDIR) {
		return ident.TopicID{}, fmt.Errorf("%w: %w", ErrFormat, err) // damage of this partition, not a fault of the disk
	}
	if err != nil {
		return ident.TopicID{}, err
	}
	return decodePartitionMeta(b)
}
