package store

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/troupe-broker/troupe/wire/ident"
)

// keyMap remembers the last offset of each key in bounded memory: of the key only the
// first 16 bytes of its SHA-256, so that a place costs 24 bytes however long the keys
// are. Two keys with one such hash would be one key, and the older record of the two be
// lost; nobody can make such a pair (ADR 0013). Kafka: SkimpyOffsetMap.java, with MD5.
type keyMap struct {
	places []keyPlace
	used   int
	max    int // of used
}

// keyPlace is one key. next 0: free.
type keyPlace struct {
	high, low uint64
	next      ident.Offset // the offset after the key's last record
}

const keyPlaceSize = 24

// newKeyMap makes a map for at most keys keys in at most size bytes, that is never
// filled beyond load of its places. At least one key fits.
func newKeyMap(size int64, load float64, keys int64) *keyMap {
	if load <= 0 || load > 0.99 {
		load = 0.99
	}
	most := max(size/keyPlaceSize, 2)
	if want := float64(keys)/load + 2; want < float64(most) {
		most = int64(want)
	}
	return &keyMap{places: make([]keyPlace, most), max: max(int(float64(most)*load), 1)}
}

// put notes that the key's last offset is o. false: the key is new and the map is full.
func (m *keyMap) put(key []byte, o ident.Offset) bool {
	p, found := m.find(key)
	if !found {
		if m.used == m.max {
			return false
		}
		m.used++
	}
	p.next = o + 1
	return true
}

// get is the key's last offset, NoOffset when the map does not have the key.
func (m *keyMap) get(key []byte) ident.Offset {
	if p, found := m.find(key); found {
		return p.next - 1
	}
	return ident.NoOffset
}

// find returns the place of a key; when it is not there, a free one that has its hash.
func (m *keyMap) find(key []byte) (p *keyPlace, found bool) {
	sum := sha256.Sum256(key)
	high, low := binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
	i, _ := bits.Mul64(high, uint64(len(m.places)))
	for {
		p = &m.places[i]
		switch {
		case p.next == 0:
			p.high, p.low = high, low
			return p, false
		case p.high == high && p.low == low:
			return p, true
		}
		if i++; i == uint64(len(m.places)) {
			i = 0
		}
	}
}
