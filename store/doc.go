// Package store keeps bytes on disks: the logs of partitions in Kafka's own file
// names and formats, the log of the metadata quorum, and the few small files of a
// data directory. It knows offsets, epochs and batches; it knows no roles, no
// clients and no clock: time is passed in, and everything it does with a disk
// goes through [FS], so that a test or a simulation can be the disk.
//
// FORMAT.md beside this file draws every file in boxes.
//
// # Who calls what, and from where
//
// One owner (the actor of the partition) calls the methods of a [Log], one at a
// time; there is no lock on the append path. Three kinds of value may leave the
// owner's turn: a [Region] (bytes to send, counted by reference), a [SyncWork]
// (what has to reach the platter) and jobs given to [LogOptions].Background
// (reserve space, unlink files). Whoever does a SyncWork hands its [SyncResult]
// back to the owner, who calls [Log.Synced].
//
//	owner                          flusher                     socket
//	-----                          -------                     ------
//	log.Append(batch)
//	work, dirty := log.BeginSync() ---> syncer.Sync(works)
//	log.Synced(result)         <---     result{Generation, End}
//	region := log.Read(...)        ------------------------->  sendfile / writev
//	                                                           region.Release()
//
// # Glossary
//
//   - Directory: one data directory (log.dirs): its lock, identity, marks, control
//     block. It goes offline as a whole ([ErrDirectoryOffline]) on the first failed
//     sync or I/O error and never comes back without a restart.
//   - Segment: one file of a log, named by the offset it begins at.
//   - Active segment: the last one, the only one that grows. It is reserved ahead
//     with fallocate; a full disk is an error of the reservation ([ErrNoSpace]).
//   - End: the offset after the last appended batch. Kafka's log end offset.
//   - Flushed end: everything below it survives a power loss. Never above End.
//   - Durable mark: a flushed end that is itself on disk; Kafka's recovery point.
//   - Generation: raised by truncation and by reopening; results of work begun under
//     another generation are void.
//   - Control block: a small mapped file with each log's end and the kernel's boot
//     id. It is what makes a restart after kill -9 skip the scan.
//   - Error mark: a file that says that an I/O error happened in this directory, so
//     that the page cache of this boot proves nothing.
//   - Clean marker: .kafka_cleanshutdown; the last stop closed every log.
//   - Stray: a partition directory whose identity is lost; kept, renamed, not served.
//
// # Promises
//
//   - Bytes of a region never change while it is held, truncation excepted.
//   - Append is all or nothing: when it fails, no state has changed.
//   - A sync that failed once is never reported as successful later.
//   - Offsets below the durable mark are never dropped silently: damage there is
//     reported ([Recovery].Damage) and read as [ErrDamaged].
package store
