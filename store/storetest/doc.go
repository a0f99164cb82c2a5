// Package storetest has the twins of a disk: one in memory that forgets what was
// not synced, one that fails on command, one that is slow. They implement
// store.FS, so everything above store runs on them unchanged.
package storetest
