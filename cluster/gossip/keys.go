package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

const keysMax = 8

// ErrKeys is what Start and Rotate return for keys that cannot be used.
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

// rotate makes the ring hold exactly the keys, the first of which seals from now on.
func rotate(ring *memberlist.Keyring, keys [][]byte) error {
	err := checkKeys(keys)
	switch {
	case err != nil:
		return err
	case ring == nil:
		return fmt.Errorf("%w: this broker was started without a key; sealing begins with a restart", ErrKeys)
	case len(keys) == 0:
		return fmt.Errorf("%w: this broker was started with a key; sealing ends with a restart", ErrKeys)
	}
	for _, key := range keys {
		err = errors.Join(err, ring.AddKey(key))
	}
	err = errors.Join(err, ring.UseKey(keys[0]))
	for _, key := range ring.GetKeys() {
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			err = errors.Join(err, ring.RemoveKey(key))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return nil
}
