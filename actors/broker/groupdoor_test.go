package broker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// told is what the monitor tells of a group.
func (r *running) told(group string) (status int, g map[string]any) {
	r.t.Helper()
	w := r.askMonitor(group)
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil {
			r.t.Fatal(err)
		}
	}
	return w.Code, g
}

func (r *running) askMonitor(group string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	query := url.Values{"group": {group}}.Encode()
	r.GroupHandler().ServeHTTP(w, httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/groups?"+query, nil))
	return w
}

// All three brokers have a replica of every partition of the offsets topic, and each coordinates the groups of some.
func TestOneOfThreeMonitorsTellsOfAGroupAndTheOthersSayWhich(t *testing.T) {
	all := trio(t, append([]string{"offsets.topic.replication.factor=3"}, quick...)...)
	if err := all[0].create("orders", 1, 3); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"a", "b", "c", "d", "e", "f"} {
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 0, LeaderEpoch: -1})
		eventually(t, "an offset is committed", func() bool {
			return all[0].admin().CommitAllOffsets(within(t, 10*time.Second), group, offsets) == nil
		})
	}
	// ask returns who answers so, and what the others say.
	ask := func(group string, code int, words string) (who int32, others []string) {
		for i, b := range all {
			w := b.askMonitor(group)
			body := strings.TrimSpace(w.Body.String())
			switch {
			case w.Code == code && strings.Contains(body, words):
				who = int32(i + 1)
			case w.Code == http.StatusNotFound:
				others = append(others, body)
			}
		}
		return who, others
	}
	for group, told := range map[string]struct {
		code  int
		words string
	}{"a": {http.StatusOK, `"group":"a"`}, "b": {http.StatusOK, `"group":"b"`}, "nobody": {http.StatusNotFound, "there is no such group"}} {
		eventually(t, "one monitor tells of "+group+", the others of that one", func() bool {
			who, others := ask(group, told.code, told.words)
			want := fmt.Sprintf("broker %d coordinates groups of this name: ask its monitor (metrics.listen)", who)
			return who > 0 && slices.Equal(others, []string{want, want})
		})
	}
	eventually(t, "no scrape misses a coordinator", func() bool {
		return !slices.ContainsFunc(all, func(b *running) bool { return !strings.Contains(scrape(b), "\ntroupe_group_scrape_missed 0\n") })
	})
}

func TestTheMonitorTellsWhatAGroupJumpedOver(t *testing.T) {
	r := startIn(t, t.TempDir(), quick...)
	r.createTopic("orders", 1)
	r.produceTo("orders", 1, 7)
	if status, _ := r.told("readers/late"); status != http.StatusNotFound {
		t.Errorf("a group that is not there: %d", status)
	}
	w := httptest.NewRecorder()
	r.GroupHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/groups", nil))
	if w.Code != http.StatusBadRequest {
		t.Errorf("a question without a group: %d", w.Code)
	}

	m := r.join("readers/late", "orders", kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()))
	eventually(t, "a member that begins at the end has read something", func() bool {
		r.produceTo("orders", 1, 1)
		return len(m.seen()) > 0
	})
	m.leave()
	eventually(t, "the monitor tells of the jump", func() bool {
		status, g := r.told("readers/late")
		if status != http.StatusOK || g["type"] != "Classic" {
			return false
		}
		for _, o := range g["offsets"].([]any) {
			o := o.(map[string]any)
			jump, ok := o["jump"].(map[string]any)
			if !ok || o["topic"] != "orders" {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, jump["at"].(string))
			return err == nil && time.Since(at) < time.Minute && jump["from"] == 0.0 && jump["records"].(float64) >= 7 && jump["reason"] == "no committed offset"
		}
		return false
	})
}
