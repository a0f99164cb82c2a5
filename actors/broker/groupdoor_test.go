package broker_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// told is what the monitor tells of a group.
func (r *running) told(group string) (status int, g map[string]any) {
	r.t.Helper()
	w := httptest.NewRecorder()
	query := url.Values{"group": {group}}.Encode()
	r.GroupHandler().ServeHTTP(w, httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/groups?"+query, nil))
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil {
			r.t.Fatal(err)
		}
	}
	return w.Code, g
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
