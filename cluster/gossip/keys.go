package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

const keysMax = 8

// ErrKeys is what Start returns for keys that cannot be used.
var ErrKeys = errors.New("TRP-4202: the gossip keys cannot be used")

func checkKeys(keys [][]byte) error {
	if len(keys) > keysMax {
		return fmt.Errorf("%w: %d keys, %d are the limit", ErrKeys, len(keys), keysMax)
	}
	for i, key := range keys {
		if n := len(key); n != 16 && n != 24 && n != 32 {
			return fmt.Errorf("%w: key %d has %d bytes; 16, 24 or 32 select AES-128, AES-192 or AES-256", ErrKeys, i+1, n)
		}
		if slices.ContainsFunc(keys[:i], func(k []byte) bool { return bytes.Equal(k, key) }) {
			return fmt.Errorf("%w: key %d is there twice", ErrKeys, i+1)
		}
	}
	return nil
}

// newKeyring returns nil for no keys: nothing is sealed.
func newKeyring(keys [][]byte) (*memberlist.Keyring, error) {
	if err := checkKeys(keys); err != nil || len(keys) == 0 {
		return nil, err
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return ring, nil
}
