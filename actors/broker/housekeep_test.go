package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
)

// TestAnAlarmThatWentOffBeforeTheCloseIsLate: the signal of retention may lie in the mailbox behind the message that closes the log.
func TestAnAlarmThatWentOffBeforeTheCloseIsLate(*testing.T) {
	p := &partitionActor{machine: new(partition.Machine)} // as close leaves it: the machine stays, the log does not
	p.signalled(nil, signalRetain)
}

// TestADeletionThatComesAfterTheCloseIsLeftToTheNextStart: a topic is deleted while the broker stops, and its log is on its way to be closed. The recovery pool
// was given no log to delete, and the broker died of it.
func TestADeletionThatComesAfterTheCloseIsLeftToTheNextStart(*testing.T) {
	p := &partitionActor{machine: new(partition.Machine)} // as close leaves it
	p.remove(nil, wire.UnknownTopicOrPartition)
}
