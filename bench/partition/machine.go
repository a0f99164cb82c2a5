package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// touch uses n bytes of memory and gives them back. A virtual machine whose host takes free memory away gets it again page by page, at many times the price of a
// page that is there; a run that writes n bytes into the page cache right behind a touch finds them there, whichever run was before it.
func touch(n int64) error {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("touching %d bytes of memory: %w", n, err)
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return unix.Munmap(b)
}

// pinSelf keeps every thread of this process, present and future, on one CPU.
func pinSelf(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &one); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin thread %d to CPU %d: %w", tid, cpu, err)
		}
	}
	return nil
}
