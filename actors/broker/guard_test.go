package broker_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// probe asks a broker whether it is ready.
func (r *running) probe(path string) (int, string) {
	page := httptest.NewRecorder()
	r.ReadyHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, path, nil))
	return page.Code, page.Body.String()
}

func TestAProbeGuardsTheNextRestart(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	c.create("t", 3, nil)
	first := c.running[0]
	awaitFact(t, "all to be well", func() bool { code, _ := first.probe("/readyz?restart"); return code == http.StatusOK })
	c.stop(2)
	awaitFact(t, "the stop to be known", func() bool { code, _ := first.probe("/readyz?restart"); return code == http.StatusServiceUnavailable })
	if code, said := first.probe("/readyz?restart"); code != http.StatusServiceUnavailable || !strings.Contains(said, "broker 3 does not serve") {
		t.Errorf("status %d: %s", code, said)
	}
	if code, said := first.probe("/readyz"); code != http.StatusOK {
		t.Errorf("status %d of a broker that serves: %s", code, said)
	}
	c.again(2)
	awaitFact(t, "all to be well again", func() bool { code, _ := first.probe("/readyz?restart"); return code == http.StatusOK })
	c.whole("t")
}
