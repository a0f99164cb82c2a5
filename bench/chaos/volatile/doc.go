// Package volatile is a disk whose memory is lost with the power, for real processes. A broker of a test build works on it as on its own file system:
// what it writes, through mappings too, goes to the data directory, which is the page cache here. Beside it lies a second directory, the platter, to which
// bytes of a file come when the file is synced, and names when their directory is. After the process was killed, [Lose] makes the data directory what a
// machine could find there whose power was cut at that moment:
//
//   - what was synced is there;
//   - of each file that was not, any of its sectors of 512 bytes may be there, of the new length or the old one;
//   - of each directory that was not, either the names that it had at its last sync or those it had in the end. A file in it that was never synced may
//     be empty, or be whole.
//
// How lucky it was is drawn by a generator, so that a seed decides it. The page cache of a process that was killed without a loss stays, as it does.
//
// The machine's own disk is never waited for: it has no part in what is durable here. A file is known by its inode and the time of its birth, which statx(2) tells; where the file system has no such time, [New] says so. Whole file systems are
// never synced at once here: Usage says that the data directory shares its own with others.
package volatile
