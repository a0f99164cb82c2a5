package checkup_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/wire/checkup"
)

func TestOrdersAndReportsReadAsTheyWereWritten(t *testing.T) {
	for _, want := range []checkup.Order{{Do: checkup.Look}, {Do: checkup.Verify}, {Do: checkup.Repair, Divergent: true}} {
		if got, err := checkup.DecodeOrder(want.Encode()); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	want := checkup.Report{
		Run: 7, Asked: 3, Done: 2, State: "follower", Leader: 2, Start: 5, High: 90, End: 100, Bytes: 1 << 40, Running: true, At: 50, Whole: true, Checked: 1 << 39,
		Compared: 85, NotCompared: "why", Divergent: []checkup.Range{{From: 6, To: 7, Kind: "another record"}}, MoreDiffer: 1,
		Found: []checkup.Range{{From: 1, To: 2}}, Damaged: []checkup.Range{{From: 8, To: 10}}, MoreDamage: 2, Mending: checkup.Waiting, Why: "nobody leads",
	}
	if got, err := checkup.DecodeReport(want.Encode()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	refusal := checkup.Refusal{Error: "there is no such order"}
	if got, err := checkup.DecodeRefusal(refusal.Encode()); err != nil || got != refusal {
		t.Errorf("%+v, %v, want %+v", got, err, refusal)
	}
	if got, err := checkup.DecodeReport([]byte(`{"run":7,"what a later build says":[1,2]}`)); err != nil || got.Run != 7 {
		t.Errorf("a report of a later build: %+v, %v", got, err)
	}
}

func TestWhatIsNoOrderIsRefused(t *testing.T) {
	for _, bad := range []string{"", "{", `{"do":"everything"}`, `{"do":7}`, `{}`, `{"do":"look","x":"` + strings.Repeat("x", 1<<10) + `"}`} {
		if got, err := checkup.DecodeOrder([]byte(bad)); err == nil {
			t.Errorf("%.40q is taken for %+v", bad, got)
		}
	}
	if _, err := checkup.DecodeReport([]byte("[]")); err == nil {
		t.Error("a list is taken for a report")
	}
	if _, err := checkup.DecodeRefusal([]byte("[]")); err == nil {
		t.Error("a list is taken for a refusal")
	}
}
