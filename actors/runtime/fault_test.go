package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// torn maps a file and cuts it, so that a read of the mapping faults, as a read of a
// bad sector does.
func torn(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mapped")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Munmap(mem), f.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return mem
}

func TestAMemoryFaultIsAFactOfItsActor(t *testing.T) {
	mem := torn(t)
	lo := uintptr(unsafe.Pointer(&mem[0]))
	sys := newSystem(t) // any bug fails the test
	sum := byte(0)
	var facts []runtime.Fault
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "replica", Kind: "test", PanicOnFault: true, Behaviour: &script{
		onMessage: func(_ *runtime.Turn, m runtime.Message) {
			if n := m.(*note); n.size > 0 {
				sum += mem[n.size]
			}
		},
		onFault: func(_ *runtime.Turn, f runtime.Fault, batch []runtime.Message) bool {
			facts = append(facts, f)
			if batch[0] != nil {
				t.Error("the handled message is offered again")
			}
			batch[2].(*note).handled.Add(1) // answered here
			batch[2] = nil
			return f.Addr >= lo && f.Addr < lo+uintptr(len(mem))
		},
	}})
	r := runtime.NewRunner(sys)
	batch := []*note{{}, {size: 5000}, {}, {}}
	for _, n := range batch {
		if err := r.Send(ref, n); err != nil {
			t.Fatal(err)
		}
	}
	r.Run()
	if len(facts) != 1 || facts[0].Addr != lo+5000 {
		t.Fatalf("facts %v, mapping at %#x", facts, lo)
	}
	for i, want := range []string{"handled", "fault", "handled", "fault"} {
		h, rj := batch[i].answers()
		var fault *runtime.FaultError
		isFault := rj == 1 && errors.As(*batch[i].why.Load(), &fault) && fault.Actor == "replica" && fault.Addr == lo+5000
		if (want == "handled") != (h == 1 && rj == 0) || (want == "fault") != (isFault && h == 0) {
			t.Errorf("message %d: handled %d times, rejected %d times", i, h, rj)
		}
	}
	ok := &note{}
	if err := r.Send(ref, ok); err != nil {
		t.Fatal(err)
	}
	r.Run()
	if ok.handled.Load() != 1 {
		t.Error("the actor does not go on")
	}
	if debug.SetPanicOnFault(false) {
		t.Error("the sender's goroutine was left with PanicOnFault")
	}
	if s := sys.Stats()[0]; s.Panics != 0 {
		t.Errorf("a fault was counted as a bug: %+v", s)
	}
}

func TestAFaultAtAnAddressOfNobodyIsABug(t *testing.T) {
	mem := torn(t)
	for _, b := range []runtime.Behaviour{
		&script{onMessage: func(*runtime.Turn, runtime.Message) { mem[0]++ }},
		turnOnly(func() { mem[0]++ }),
	} {
		blames := make(chan *runtime.Blame, 1)
		sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) { blames <- b }})
		ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", PanicOnFault: true, OnBug: runtime.Policy{OnBug: runtime.Stop}, Behaviour: b})
		r := runtime.NewRunner(sys)
		n := &note{}
		if err := r.Send(ref, n); err != nil {
			t.Fatal(err)
		}
		r.Run()
		blame := <-blames
		if blame.Fault == nil || blame.Fault.Addr != uintptr(unsafe.Pointer(&mem[0])) {
			t.Errorf("blame %v", blame)
		}
		<-ref.Done()
		if n.rejected.Load() != 1 {
			t.Error("the message was not answered")
		}
		shutdown(t, sys)
	}
}

// turnOnly is a behaviour without hooks.
type turnOnly func()

func (f turnOnly) Turn(*runtime.Turn, []runtime.Message) { f() }

// A nil dereference is a bug, not a fault: it has no address.
func TestANilDereferenceIsNoFault(t *testing.T) {
	blames := make(chan *runtime.Blame, 1)
	sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) { blames <- b }})
	defer shutdown(t, sys)
	var nothing *note
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "test", PanicOnFault: true, OnBug: runtime.Policy{OnBug: runtime.Stop}, Behaviour: &script{
		onMessage: func(*runtime.Turn, runtime.Message) { nothing.size++ },
		onFault: func(*runtime.Turn, runtime.Fault, []runtime.Message) bool {
			t.Error("reported as a fault")
			return true
		},
	}})
	r := runtime.NewRunner(sys)
	if err := r.Send(ref, &note{}); err != nil {
		t.Fatal(err)
	}
	r.Run()
	if b := <-blames; b.Fault != nil {
		t.Errorf("blame %v", b)
	}
}
