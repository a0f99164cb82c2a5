package broker

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/store"
)

const (
	// sendFileMin is the size of a region from which sendfile beats a copy by writev.
	sendFileMin = 32 << 10
	// outputTurnMax bounds what one turn writes, so that a fast reader of a long answer does not keep the goroutine that happens to run it.
	outputTurnMax = 1 << 20
	// outputKept is the capacity of a buffer that is kept between answers.
	outputMin = 4 << 10
	// copyMax is how much of a region that is neither mapped nor fit for sendfile is copied at a time.
	copyMax = 64 << 10
)

// output is what a session has to write: the bytes of encoded answers, and between them regions of logs that go out without being copied. It is used in
// turns of the session only.
type output struct {
	store *buffers

	buf     []byte        // encoded bytes, all answers one after the other
	grown   bool          // buf is not the store's: an answer has outgrown what was
	regions []placed      // in order
	sent    int           // bytes of buf that are out
	first   int           // index of the first region that is not out
	part    int           // bytes of that region that are out
	vec     [][]byte      // of one write
	copied  []byte        // bytes of a region on their way by copy
	state   outputState   // why something is left
	cold    *store.Region // what waits for the disk, while state is outputCold
}

// placed is a region that goes out before buf[at:].
type placed struct {
	at     int
	region store.Region
	warm   bool // known to need no disk
}

// present says whether sending the region needs no disk. What is mapped was written a moment ago.
func (p *placed) present() bool {
	p.warm = p.warm || p.region.Mapped() != nil || p.region.Resident()
	return p.warm
}

type outputState int8

const (
	outputReady   outputState = iota
	outputBlocked             // the peer takes no more now
	outputCold                // the next region has to be read from the disk first
	outputMore                // more can be written, in another turn
)

// empty says whether everything is out.
func (o *output) empty() bool { return o.sent == len(o.buf) && o.first == len(o.regions) }

// answersMax is how many bytes of encoded answers wait for the peer before further requests of it are begun.
const answersMax = 1 << 20

// full says whether so many encoded answers wait that no further request is to be begun. Regions of logs do not count: they are not in memory.
func (o *output) full() bool { return len(o.buf)-o.sent >= answersMax }

// memory is what the output holds, in bytes.
func (o *output) memory() int64 { return int64(cap(o.buf) + cap(o.copied)) }

// begin makes room for an answer of about n bytes and returns the buffer to append it to; end takes the extended buffer back.
func (o *output) begin(n int) []byte {
	if o.buf == nil {
		o.buf = o.store.get(max(n, outputMin))[:0]
	} else if cap(o.buf)-len(o.buf) < n {
		grown := o.store.get(len(o.buf) + n)[:len(o.buf)]
		copy(grown, o.buf)
		o.giveBack()
		o.buf = grown
	}
	return o.buf
}

// end takes the buffer back. One that an answer has outgrown is replaced by the answer's own, which goes to the garbage collector: nobody asks the store for
// such a size, and it would keep each of them.
func (o *output) end(buf []byte) {
	if cap(buf) != cap(o.buf) {
		o.giveBack()
		o.grown = true
	}
	o.buf = buf
}

func (o *output) giveBack() {
	if o.buf != nil && !o.grown {
		o.store.put(o.buf)
	}
	o.buf, o.grown = nil, false
}

// place puts a region before buf[at:]. The reference becomes the output's. warm says that it is known to need no disk.
func (o *output) place(at int, r store.Region, warm bool) {
	o.regions = append(o.regions, placed{at: at, region: r, warm: warm})
}

// write sends as much as goes. An error ends the connection. Afterwards state says why something is left, if it is.
func (o *output) write(to Transport) error {
	if o.state == outputBlocked || o.state == outputCold {
		return nil
	}
	o.state = outputReady
	budget := outputTurnMax
	for !o.empty() {
		if budget <= 0 {
			o.state = outputMore
			return nil
		}
		n, err := o.writeNext(to)
		if err != nil {
			return err
		}
		if o.state != outputReady {
			return nil
		}
		budget -= n
	}
	o.reset()
	return nil
}

// writeNext makes one write: either what can be gathered, or one region by sendfile.
func (o *output) writeNext(to Transport) (int, error) {
	if o.first < len(o.regions) && o.regions[o.first].at == o.sent {
		p := &o.regions[o.first]
		if p.region.Void() {
			return 0, errVoid
		}
		if !p.present() {
			o.state, o.cold = outputCold, &p.region
			return 0, nil
		}
		if o.byFile(to, p) {
			return o.sendFile(to, p)
		}
	}
	return o.gather(to)
}

// byFile says whether a region goes by sendfile.
func (o *output) byFile(to Transport, p *placed) bool {
	if !to.ZeroCopy() || p.region.Len() < sendFileMin && p.region.Mapped() != nil {
		return false
	}
	f, _ := p.region.File()
	_, ok := f.Fd()
	return ok
}

func (o *output) sendFile(to Transport, p *placed) (int, error) {
	f, off := p.region.File()
	fd, _ := f.Fd()
	want := min(p.region.Len()-o.part, outputTurnMax)
	n, err := to.SendFile(fd, off+int64(o.part), want)
	o.part += n
	if err != nil {
		return n, fmt.Errorf("sending %d bytes of a log segment: %w", want, err)
	}
	if o.part == p.region.Len() {
		o.pass(p)
		return n, nil
	}
	if n < want {
		o.state = outputBlocked
	}
	return n, nil
}

// gather writes encoded bytes and small regions, up to the next region that goes by sendfile or has to be looked at first.
func (o *output) gather(to Transport) (int, error) {
	o.vec = o.vec[:0]
	at, more, total := o.sent, false, 0
	add := func(b []byte) {
		o.vec = append(o.vec, b)
		total += len(b)
	}
	for i := o.first; ; i++ {
		end := len(o.buf)
		if i < len(o.regions) {
			end = o.regions[i].at
		}
		if end > at {
			add(o.buf[at:end])
			at = end
		}
		if i == len(o.regions) || len(o.vec) >= vectorMax-2 || total >= outputTurnMax {
			break
		}
		p := &o.regions[i]
		if p.region.Void() {
			return 0, errVoid
		}
		skip := 0
		if i == o.first {
			skip = o.part
		}
		if !p.present() {
			break
		}
		if o.byFile(to, p) {
			more = true
			break
		}
		if m := p.region.Mapped(); m != nil {
			add(m[skip:])
			continue
		}
		if len(o.vec) > 0 {
			more = true
			break
		}
		b, err := o.copyOf(p, skip)
		if err != nil {
			return 0, err
		}
		add(b)
		break
	}
	n, err := to.Write(o.vec, more)
	clear(o.vec)
	if err != nil {
		return n, err
	}
	o.took(n)
	if n < total {
		o.state = outputBlocked
	}
	return n, nil
}

// copyOf reads the next bytes of a region that cannot be sent from where it is.
func (o *output) copyOf(p *placed, skip int) ([]byte, error) {
	if o.copied == nil {
		o.copied = o.store.get(copyMax)
	}
	b := o.copied[:min(len(o.copied), p.region.Len()-skip)]
	n, err := p.region.ReadAt(b, int64(skip))
	if n < len(b) {
		return nil, fmt.Errorf("reading %d bytes of a log segment: %w", len(b), errors.Join(errShortFile, err))
	}
	return b, nil
}

// took books n bytes of a gathering write.
func (o *output) took(n int) {
	for n > 0 {
		if o.first < len(o.regions) && o.regions[o.first].at == o.sent {
			p := &o.regions[o.first]
			k := min(n, p.region.Len()-o.part)
			o.part += k
			n -= k
			if o.part == p.region.Len() {
				o.pass(p)
			}
			continue
		}
		end := len(o.buf)
		if o.first < len(o.regions) {
			end = o.regions[o.first].at
		}
		k := min(n, end-o.sent)
		o.sent += k
		n -= k
	}
}

// pass goes on behind a region that is out.
func (o *output) pass(p *placed) {
	p.region.Release()
	*p = placed{}
	o.first++
	o.part = 0
}

// warmed goes on after the cold region was read by somebody else, or after more can be written.
func (o *output) resume() {
	if o.state == outputCold {
		o.regions[o.first].warm = true
	}
	o.state, o.cold = outputReady, nil
}

// reset gives the buffers back.
func (o *output) reset() {
	o.giveBack()
	if o.copied != nil {
		o.store.put(o.copied)
	}
	o.copied = nil
	o.regions = o.regions[:0]
	o.sent, o.first, o.part = 0, 0, 0
}

// drop lets go of all that is not out.
func (o *output) drop() {
	for i := o.first; i < len(o.regions); i++ {
		o.regions[i].region.Release()
		o.regions[i] = placed{}
	}
	o.reset()
	o.state, o.cold = outputReady, nil
}
