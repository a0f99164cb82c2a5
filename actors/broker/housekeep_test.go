package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/partition"
)

// TestAnAlarmThatWentOffBeforeTheCloseIsLate: the signal of retention may lie in the mailbox behind the message that closes the log.
func TestAnAlarmThatWentOffBeforeTheCloseIsLate(*testing.T) {
	p := &partitionActor{machine: new(partition.Machine)} // as close leaves it: the machine stays, the log does not
	p.signalled(nil, signalRetain)
}
