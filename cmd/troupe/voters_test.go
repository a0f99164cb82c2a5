package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestAChangeOfTheVotersThatIsFoundMadeIsMade: the answer to an attempt came too late, and the next round found nobody to change.
func TestAChangeOfTheVotersThatIsFoundMadeIsMade(t *testing.T) {
	const directory = "AAAAAAAAAAAAAAAAAAAAAQ"
	observer, voter := voterRow{Broker: 2, Directory: directory, Role: "observer"}, voterRow{Broker: 2, Directory: directory, Role: "voter"}
	empty := voterRow{Broker: 2, Directory: "AAAAAAAAAAAAAAAAAAAAAg", Role: "observer"}
	timeout := kerr.RequestTimedOut.Code
	for name, c := range map[string]struct {
		vote    bool
		rows    [][]voterRow
		answers []int16
		fails   string
	}{
		"added late":                {true, [][]voterRow{{observer}, {voter}}, []int16{timeout}, ""},
		"added while it was listed": {true, [][]voterRow{{observer}, {observer}, {voter}}, []int16{timeout, kerr.DuplicateVoter.Code}, ""},
		"added the second time":     {true, [][]voterRow{{observer}, {observer}}, []int16{timeout, 0}, ""},
		"removed late":              {false, [][]voterRow{{voter}, {observer}}, []int16{timeout}, ""},
		"removed and gone":          {false, [][]voterRow{{voter}, {}}, []int16{timeout}, ""},
		"removed, and then listed":  {false, [][]voterRow{{voter}, {voter}, {}}, []int16{timeout, kerr.VoterNotFound.Code}, ""},
		"a voter from the start":    {true, [][]voterRow{{voter}}, nil, "it is voter with directory " + directory},
		"gone is not added":         {true, [][]voterRow{{observer}, {}}, []int16{timeout}, "no such broker 2"},
		"another directory":         {true, [][]voterRow{{observer}}, []int16{kerr.DuplicateVoter.Code}, "DUPLICATE_VOTER"},
		"another directory's vote":  {true, [][]voterRow{{observer, empty}, {empty}, {empty}}, []int16{timeout, timeout, timeout}, "REQUEST_TIMED_OUT"},
	} {
		rounds, calls := 0, 0
		change := changingVoters{
			broker: 2, vote: c.vote,
			list: func() ([]voterRow, error) { rounds++; return c.rows[rounds-1], nil },
			call: func(*voterRow) (int16, *string, error) { calls++; return c.answers[calls-1], nil, nil },
			rest: func() error {
				if rounds == len(c.rows) {
					return errors.New("the time is up")
				}
				return nil
			},
		}
		r, err := change.run()
		switch {
		case c.fails == "" && (err != nil || r.Broker != 2 || r.Directory != directory):
			t.Errorf("%s: %+v, %v", name, r, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		case rounds != len(c.rows) || calls != len(c.answers):
			t.Errorf("%s: %d lists and %d calls", name, rounds, calls)
		}
	}
}
