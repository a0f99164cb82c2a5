package ident

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
)

// uuidTextLen is the length of a Uuid's text: 16 bytes in base 64 without padding.
const uuidTextLen = 22

// uuidText is the alphabet of Kafka's Uuid.toString: URL-safe base 64 without
// padding. Strict refuses set bits after the sixteenth byte, so that each id has
// exactly one text.
var uuidText = base64.RawURLEncoding.Strict()

// ErrUUID is what every failed parse of an id's text wraps.
var ErrUUID = errors.New("an id is 22 characters of URL-safe base64 (A-Z a-z 0-9 - _)")

// TopicID is the id of a topic (KIP-516). The zero value means "none".
type TopicID [16]byte

// IsZero tells whether the id is the zero value, Kafka's ZERO_UUID.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// Compare orders ids by their bytes: -1, 0 or +1.
func (id TopicID) Compare(other TopicID) int { return bytes.Compare(id[:], other[:]) }

// String prints the id as Kafka prints a Uuid: 22 characters of URL-safe base 64.
func (id TopicID) String() string { return uuidText.EncodeToString(id[:]) }

// ParseTopicID reads the text that [TopicID.String] writes.
func ParseTopicID(s string) (TopicID, error) {
	id, err := parseUUID(s)
	if err != nil {
		return TopicID{}, fmt.Errorf("topic id %.40q: %w", s, err)
	}
	return id, nil
}

// DirectoryID is the id of a data directory (KIP-858). The zero value means
// "unassigned".
type DirectoryID [16]byte

// The directory ids that Kafka reserves (DirectoryId.java). Ids below 100 are
// kept for such meanings; a fresh id must not be one of them.
var (
	DirectoryUnassigned = DirectoryID{}
	DirectoryLost       = DirectoryID{15: 1}
	DirectoryMigrating  = DirectoryID{15: 2}
)

// IsZero tells whether the id is the zero value.
func (id DirectoryID) IsZero() bool { return id == DirectoryID{} }

// IsReserved tells whether the id is one of the hundred that Kafka keeps for
// special meanings.
func (id DirectoryID) IsReserved() bool {
	return [15]byte(id[:15]) == [15]byte{} && id[15] < 100
}

// Compare orders ids by their bytes: -1, 0 or +1.
func (id DirectoryID) Compare(other DirectoryID) int { return bytes.Compare(id[:], other[:]) }

// String prints the id as Kafka prints a Uuid.
func (id DirectoryID) String() string { return uuidText.EncodeToString(id[:]) }

// ParseDirectoryID reads the text that [DirectoryID.String] writes.
func ParseDirectoryID(s string) (DirectoryID, error) {
	id, err := parseUUID(s)
	if err != nil {
		return DirectoryID{}, fmt.Errorf("directory id %.40q: %w", s, err)
	}
	return id, nil
}

func parseUUID(s string) (id [16]byte, err error) {
	// base64 skips line breaks; an id has none, so the length is checked first
	// and the decoded length after.
	if len(s) != uuidTextLen {
		return id, fmt.Errorf("it has %d characters: %w", len(s), ErrUUID)
	}
	n, err := uuidText.Decode(id[:], []byte(s))
	if err != nil || n != len(id) {
		return [16]byte{}, ErrUUID
	}
	return id, nil
}
