package peer_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/troupe-broker/troupe/wire/peer"
)

// TestTheLedgerIsTheCode holds the table of the package comment against what the code goes by: a message is sent only to a cluster that has finalised the version
// in its row.
func TestTheLedgerIsTheCode(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[peer.Code]string)
	for _, row := range regexp.MustCompile(`(?m)^//\t\| +(\d+) \| (\w+) +\| (\w+) +\|[^|]*\| (\d+) +\|$`).FindAllSubmatch(text, -1) {
		var code peer.Code
		if _, err := fmt.Sscan(string(row[1]), &code); err != nil {
			t.Fatal(err)
		}
		rows[code] = fmt.Sprintf("%s on %s since %s", row[2], row[3], row[4])
	}
	for code := range peer.Required {
		want := ""
		if code.Known() {
			on := "both"
			if control, data := code.On(peer.Control), code.On(peer.Data); control != data {
				on = map[bool]string{true: "control", false: "data"}[control]
			}
			want = fmt.Sprintf("%s on %s since %d", code, on, code.Since())
		}
		if rows[code] != want {
			t.Errorf("the ledger has %q of code %d, the code %q", rows[code], code, want)
		}
	}
}
