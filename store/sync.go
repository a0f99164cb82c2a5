package store

import "github.com/troupe-broker/troupe/wire/ident"

// SyncWork is one log's share of a flush round, captured before the round. It is
// a value to be handed to a [Syncer] exactly once.
type SyncWork struct {
	log        *Log
	generation ident.Generation
	end        ident.Offset
}

// SyncResult is the fact that comes back: everything of the log below End, as it
// was in Generation, is on disk; or Err says why that is not known.
type SyncResult struct {
	Log        *Log
	Generation ident.Generation
	End        ident.Offset
	Err        error
}

// Syncer does flush rounds for one directory.
type Syncer struct{}

// NewSyncer returns a syncer for the logs of d.
func (d *Directory) NewSyncer() *Syncer { panic("not written yet") }

// Sync does one round: the dirty files of all works in parallel, or the whole file
// system at once when they are many and it is ours alone; then directories, epoch
// files and log starts that wait. Results are appended to dst, one for each work,
// in order. It blocks; it must not be called by two goroutines at once. When any
// sync fails every result of the round carries the error and the directory is
// offline.
func (s *Syncer) Sync(dst []SyncResult, works []SyncWork) []SyncResult { panic("not written yet") }
