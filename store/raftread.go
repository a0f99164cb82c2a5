package store

// RaftFileState is what one of the two files of a Raft log holds, read without the
// other one and without a lock, for tools.
type RaftFileState struct {
	RaftState
	Generation uint64 // counts the lives of the log; the file with the greater one counts
	Retired    bool   // the other file has taken over
}

// ReadRaftFile decodes the bytes of one file of a Raft log. A file that is reserved
// for the next generation has no head: ErrFormat. The result aliases b.
func ReadRaftFile(b []byte) (RaftFileState, error) {
	head, err := decodeRaftHead(b)
	if err != nil {
		return RaftFileState{}, err
	}
	state, _, err := decodeRaftFile(b, head.generation)
	return RaftFileState{RaftState: state, Generation: head.generation, Retired: head.retired}, err
}
