package wire_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/troupe-broker/troupe/wire"
)

func TestErrorCodesHaveKafkasNames(t *testing.T) {
	if wire.NoError.String() != "NONE" {
		t.Errorf("0 is %v", wire.NoError)
	}
	for code := wire.UnknownServerError; code <= wire.ControllerIDNotRegistered; code++ {
		if !code.Known() {
			t.Errorf("%d is not known", code)
		}
		if code == wire.NoError {
			continue
		}
		known := kerr.TypedErrorForCode(int16(code))
		if known == nil {
			t.Errorf("the client library does not know %d %v", code, code)
			continue
		}
		want := known.Message
		if code == wire.NotLeaderOrFollower {
			want = "NOT_LEADER_OR_FOLLOWER" // the library keeps the name from before Kafka 2.6
		}
		if want != code.String() {
			t.Errorf("%d is %v, the client library calls it %s", code, code, known.Message)
		}
	}
	if code := wire.ErrorCode(137); code.Known() || code.String() != "ERROR_137" || code.Retriable() || code.RefreshesMetadata() {
		t.Errorf("137 is %v", code)
	}
	if code := wire.ErrorCode(-2); code.Known() || code.String() != "ERROR_-2" {
		t.Errorf("-2 is %v", code)
	}
}

func TestWhatAJavaClientDoesWithAnError(t *testing.T) {
	for code, want := range map[wire.ErrorCode][2]bool{
		wire.NoError:                   {false, false},
		wire.UnknownServerError:        {false, false},
		wire.CorruptMessage:            {true, false},
		wire.UnknownTopicOrPartition:   {true, true},
		wire.NotLeaderOrFollower:       {true, true},
		wire.NotEnoughReplicas:         {true, false},
		wire.KafkaStorageError:         {true, true},
		wire.InvalidRecord:             {false, false},
		wire.MessageTooLarge:           {false, false},
		wire.UnknownTopicID:            {true, true},
		wire.ThrottlingQuotaExceeded:   {true, false},
		wire.InconsistentTopicID:       {true, true},
		wire.ShareSessionLimitReached:  {true, false},
		wire.ControllerIDNotRegistered: {false, false},
	} {
		if code.Retriable() != want[0] || code.RefreshesMetadata() != want[1] {
			t.Errorf("%v: retriable %v, refreshes metadata %v, want %v", code, code.Retriable(), code.RefreshesMetadata(), want)
		}
	}
	// Whoever asks for metadata means to ask again.
	for code := wire.UnknownServerError; code <= wire.ControllerIDNotRegistered; code++ {
		if code.RefreshesMetadata() && !code.Retriable() {
			t.Errorf("%v refreshes metadata and is not retried", code)
		}
	}
}
