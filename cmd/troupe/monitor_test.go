package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

func TestMonitorAnswersBeforeTheBrokerIsThere(t *testing.T) {
	m, err := startMonitor(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + m.Address.String()
	if status, body := get(t, url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "starting") {
		t.Errorf("before: %d %q", status, body)
	}
	said := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, word) })
	}
	m.attach(said("numbers"), said("ready"), said("groups"))
	for path, want := range map[string]string{"/metrics": "numbers", "/readyz": "ready", "/groups": "groups"} {
		if status, body := get(t, url+path); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if status, _ := get(t, url+"/other"); status != http.StatusNotFound {
		t.Errorf("another path: %d", status)
	}

	_, err = startMonitor(t.Context(), m.Address.String())
	if f := asFailure(err); err == nil || f.Code != codeListen || !strings.Contains(f.What, m.Address.String()) {
		t.Errorf("the address is taken, and the error is %v", err)
	}
	if err := m.stop(); err != nil {
		t.Error(err)
	}
	none, err := startMonitor(t.Context(), "")
	if none != nil || err != nil {
		t.Errorf("no address: %v, %v", none, err)
	}
	none.attach(said(""), said(""), said(""))
	if err := none.stop(); err != nil {
		t.Error(err)
	}
}
