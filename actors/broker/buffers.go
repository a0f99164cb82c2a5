package broker

import (
	"math/bits"
	"sync"
)

const (
	bufferMin = 4 << 10 // the smallest buffer, bytes
	// bufferPooledMax is the largest buffer that is kept for reuse. Larger ones are rare and go to the garbage collector.
	bufferPooledMax = 4 << 20
)

// buffers is a bounded store of byte slices for frames, by size class: four classes for each doubling, so that a buffer is at most a quarter larger
// than asked. It bounds what it keeps, not what is out: that is the credit pool's business.
type buffers struct {
	keepMax int64

	mu   sync.Mutex
	kept int64
	free [classCount][][]byte
}

const classCount = 41 // 4 KiB … 4 MiB, four steps each

func newBuffers(keepMax int64) *buffers { return &buffers{keepMax: keepMax} }

// classOf returns the class that holds n bytes and its size. A class of classCount means that such a buffer is not kept.
func classOf(n int) (class, size int) {
	if n <= bufferMin {
		return 0, bufferMin
	}
	if n > bufferPooledMax {
		return classCount, (n + bufferMin - 1) &^ (bufferMin - 1)
	}
	shift := bits.Len(uint(n-1)) - 1 // 2^shift < n <= 2^(shift+1)
	base := 1 << shift
	step := base / 4
	k := (n - base + step - 1) / step // 1..4
	return (shift-12)*4 + k, base + k*step
}

// get returns a buffer of at least n bytes, as long as its class. Its contents are whatever they were.
func (b *buffers) get(n int) []byte {
	class, size := classOf(n)
	if class < classCount {
		b.mu.Lock()
		if list := b.free[class]; len(list) > 0 {
			buf := list[len(list)-1]
			list[len(list)-1] = nil
			b.free[class] = list[:len(list)-1]
			b.kept -= int64(size)
			b.mu.Unlock()
			return buf
		}
		b.mu.Unlock()
	}
	return make([]byte, size)
}

// put takes a buffer back that get returned. Nobody may use it afterwards.
func (b *buffers) put(buf []byte) {
	buf = buf[:cap(buf)]
	class, size := classOf(len(buf))
	if class == classCount || size != len(buf) {
		return
	}
	b.mu.Lock()
	if b.kept+int64(size) <= b.keepMax {
		b.free[class] = append(b.free[class], buf)
		b.kept += int64(size)
	}
	b.mu.Unlock()
}
