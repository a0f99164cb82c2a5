// Package storetest has the twins of a disk, for tests and simulations. They
// implement store.FS, so that everything above it runs on them unchanged.
//
//   - [Disk] is a machine's memory and platter: it knows what is in the page cache and
//     what was synced, 512 bytes at a time, mappings included. [Disk.Kill] ends the
//     process and keeps the cache; [Disk.Crash] cuts the power, and any subset of the
//     unsynced sectors and names survives. Everything follows from a seed.
//   - [Faults] makes any file system fail on command, by rules of one line such as
//     "sync *.log nth 3: EIO".
//   - [Slow] makes any file system wait.
//
// A Disk may be used from several goroutines, but bytes written through a mapping
// are ordinary memory to it: a test that syncs on one goroutine while another
// appends through a mapping is a race, where the kernel's page cache is none.
package storetest
