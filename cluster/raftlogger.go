package cluster

import "fmt"

// raftLogger is where Raft's own messages go: a machine logs nothing. Warnings and errors become notes; what Raft considers fatal is a broken
// invariant and panics.
type raftLogger struct{ notes []string }

func (l *raftLogger) Debug(...any)          {}
func (l *raftLogger) Debugf(string, ...any) {}
func (l *raftLogger) Info(...any)           {}
func (l *raftLogger) Infof(string, ...any)  {}

func (l *raftLogger) Warning(v ...any) { l.notes = append(l.notes, fmt.Sprint(v...)) }
func (l *raftLogger) Warningf(format string, v ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, v...))
}
func (l *raftLogger) Error(v ...any) { l.notes = append(l.notes, fmt.Sprint(v...)) }
func (l *raftLogger) Errorf(format string, v ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, v...))
}

func (l *raftLogger) Fatal(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l *raftLogger) Fatalf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
func (l *raftLogger) Panic(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l *raftLogger) Panicf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
