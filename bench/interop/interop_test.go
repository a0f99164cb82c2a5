package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// TestMain lets the test binary be a driver: conversation tests start it as one.
func TestMain(m *testing.M) {
	if mood := os.Getenv("INTEROP_FAKE_DRIVER"); mood != "" {
		fakeDriver(mood)
		return
	}
	os.Exit(m.Run())
}

// fakeDriver answers as its mood says: obliging, deaf (never answers a read), brief (ends at a read), garbled.
func fakeDriver(mood string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Println("bad request")
			return
		}
		if r.Op == "read" {
			switch mood {
			case "deaf":
				continue
			case "brief":
				fmt.Fprintln(os.Stderr, "out of spirits")
				return
			case "garbled":
				fmt.Println("{not json")
				continue
			}
		}
		switch r.Op {
		case "hello":
			fmt.Printf(`{"id":%d,"hello":{"client":"fake","version":%q,"codecs":["none"],"lacks":["header-order"]}}`+"\n", r.ID, r.Bootstrap)
		case "create":
			fmt.Printf(`{"id":%d,"error":{"code":36,"message":"it exists"}}`+"\n", r.ID)
		case "read":
			fmt.Printf(`{"id":%d,"records":[{"key":null,"value":"","headers":[{"name":"h","value":"AP8="}],"timestamp":5,"offset":%d}]}`+"\n", r.ID, r.From)
		default:
			fmt.Printf(`{"id":%d}`+"\n", r.ID)
		}
	}
}

func newFake(t *testing.T, mood string) *driver {
	t.Helper()
	d := newDriver(peer.Command{
		Path: os.Args[0], Env: []string{"INTEROP_FAKE_DRIVER=" + mood}, Output: filepath.Join(t.TempDir(), "fake.log"),
	}, "127.0.0.1:1")
	t.Cleanup(func() {
		if err := d.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestAConversationKeepsNullAndEmptyApart(t *testing.T) {
	d := newFake(t, "obliging")
	h, err := d.hello(t.Context())
	if err != nil || h.Client != "fake" || h.Version != "127.0.0.1:1" || !h.lacks(lacksHeaderOrder) {
		t.Fatalf("hello = %+v, %v", h, err)
	}
	records, err := d.read(t.Context(), "t", 0, 7, 1)
	if err != nil || len(records) != 1 {
		t.Fatalf("read = %v, %v", records, err)
	}
	want := record{Key: nil, Value: []byte{}, Headers: []header{{"h", []byte{0, 0xff}}}, Timestamp: 5, Offset: 7}
	if err := differences(h, h, []record{want}, records); err != nil {
		t.Error(err)
	}
}

func TestARefusalCarriesTheProtocolsCode(t *testing.T) {
	d := newFake(t, "obliging")
	err := d.create(t.Context(), "t", 1, nil)
	if wantError(err, 36) != nil {
		t.Errorf("create = %v, want code 36", err)
	}
	for _, wrong := range []error{nil, errors.New("no code"), err} {
		if wantError(wrong, 3) == nil {
			t.Errorf("%v passed for error code 3", wrong)
		}
	}
}

func TestADriverThatIsDeafOrDiesCostsOneCall(t *testing.T) {
	for _, mood := range []string{"deaf", "brief", "garbled"} {
		t.Run(mood, func(t *testing.T) {
			d := newFake(t, mood)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if mood != "deaf" {
				ctx = t.Context()
			}
			_, err := d.read(ctx, "t", 0, 0, 1)
			if err == nil {
				t.Fatal("a read without an answer succeeded")
			}
			if mood == "brief" && !strings.Contains(err.Error(), "out of spirits") {
				t.Errorf("the error lacks the end of the driver's log: %v", err)
			}
			if err := d.remove(t.Context(), "t"); err != nil {
				t.Errorf("the call after it: %v", err)
			}
		})
	}
}

func TestTheCorpusHoldsWhatItIsFor(t *testing.T) {
	records := corpus(1_000_000)
	shows := map[string]func(record) bool{
		"null key":    func(r record) bool { return r.Key == nil },
		"empty key":   func(r record) bool { return r.Key != nil && len(r.Key) == 0 },
		"null value":  func(r record) bool { return r.Value == nil },
		"empty value": func(r record) bool { return r.Value != nil && len(r.Value) == 0 },
		"nothing":     func(r record) bool { return r.Key == nil && r.Value == nil },
		"null header": func(r record) bool {
			return slices.ContainsFunc(r.Headers, func(h header) bool { return h.Value == nil })
		},
		"value over 16 KiB": func(r record) bool { return len(r.Value) > 16<<10 },
		"earlier timestamp": func(r record) bool { return r.Timestamp < 1_000_000 },
	}
	for what, shown := range shows {
		if !slices.ContainsFunc(records, shown) {
			t.Errorf("no record with %s", what)
		}
	}
	full := hello{}
	if err := differences(full, full, records, writable(full, corpus(1_000_000))); err != nil {
		t.Errorf("a client that lacks nothing writes the corpus as it is: %v", err)
	}
	poor := writable(hello{Lacks: []string{lacksNullHeader, lacksNulHeader, lacksNothing, lacksTimestamp}}, corpus(1))
	for _, r := range poor {
		if shows["null header"](r) || shows["nothing"](r) || r.Timestamp != 0 {
			t.Errorf("a poor client writes %+v", r)
		}
	}
}

func TestEveryDifferenceIsSeen(t *testing.T) {
	full := hello{}
	base := func() record {
		return record{Key: []byte("k"), Value: []byte("v"), Headers: []header{{"a", []byte("1")}, {"b", nil}}, Timestamp: 9, Offset: 3}
	}
	for name, change := range map[string]func(*record){
		"key":         func(r *record) { r.Key = []byte("K") },
		"null key":    func(r *record) { r.Key = nil },
		"value":       func(r *record) { r.Value = []byte{} },
		"timestamp":   func(r *record) { r.Timestamp++ },
		"offset":      func(r *record) { r.Offset++ },
		"header":      func(r *record) { r.Headers[0].Value = []byte("2") },
		"header name": func(r *record) { r.Headers[0].Name = "c" },
		"null header": func(r *record) { r.Headers[1].Value = []byte{} },
		"order":       func(r *record) { slices.Reverse(r.Headers) },
		"fewer":       func(r *record) { r.Headers = r.Headers[:1] },
	} {
		got := base()
		change(&got)
		if err := differences(full, full, []record{base()}, []record{got}); err == nil {
			t.Errorf("another %s passed", name)
		}
	}
	if err := differences(full, full, []record{base()}, []record{base()}); err != nil {
		t.Errorf("the same record: %v", err)
	}
	if differences(full, full, []record{base()}, nil) == nil || differences(full, full, nil, []record{base()}) == nil {
		t.Error("another number of records passed")
	}
}

func TestOnlyWhatAClientLacksIsForgiven(t *testing.T) {
	want := record{Key: nil, Headers: []header{{"b", nil}, {"a", []byte("1")}, {"b", []byte("2")}}}
	got := record{Key: []byte{}, Headers: []header{{"a", []byte("1")}, {"b", []byte{}}, {"b", []byte("2")}}}
	lacking := hello{Lacks: []string{lacksHeaderOrder, lacksReadNullKey, lacksReadNullHeader}}
	if err := differences(hello{}, lacking, []record{want}, []record{got}); err != nil {
		t.Error(err)
	}
	swapped := got
	swapped.Headers = []header{{"a", []byte("1")}, {"b", []byte("2")}, {"b", []byte{}}}
	if differences(hello{}, lacking, []record{want}, []record{swapped}) == nil {
		t.Error("the order of two values under one name is kept by every client, and was forgiven")
	}
}

func TestKcatsOutputIsTakenApart(t *testing.T) {
	out := "0 17 -1 3\nv\n1" + "a=1,b=NULL" + kcatRecordEnd + "1 18 0 -1\n" + kcatRecordEnd
	records, err := parseKcat([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 2 || records[0].Key != nil || string(records[0].Value) != "v\n1" || records[0].HeaderText != "a=1,b=NULL" ||
		records[1].Key == nil || records[1].Value != nil || records[1].Offset != 1 || records[1].Timestamp != 18 {
		t.Errorf("parseKcat = %+v", records)
	}
	if got := kcatHeaders([]header{{"a", []byte("1")}, {"b", nil}}); got != "a=1,b=NULL" {
		t.Errorf("kcatHeaders = %q", got)
	}
	for _, bad := range []string{"no numbers\n", "0 17 5 3\nshort", "0 17 -1 1\nv and no end"} {
		if _, err := parseKcat([]byte(bad)); err == nil {
			t.Errorf("parseKcat(%q) gave no error", bad)
		}
	}
}

func TestTheReportCountsAndCIAllowsNoSkip(t *testing.T) {
	for _, ci := range []bool{false, true} {
		var out bytes.Buffer
		r := newReport(&out)
		r.strict = ci
		w := who{"fake", "1"}
		if !r.check(t.Context(), w, "good", func(context.Context) error { return nil }) {
			t.Error("a good check failed")
		}
		if r.check(t.Context(), w, "bad", func(context.Context) error { return errors.New("two\nlines") }) {
			t.Error("a bad check passed")
		}
		r.skip(w, "absent", "no such language")
		if r.summary() {
			t.Error("a run with a failure passed")
		}
		last := strings.Split(strings.TrimSpace(out.String()), "\n")
		want := "1 passed, 1 failed, 1 skipped"
		if ci {
			want = "1 passed, 2 failed"
		}
		if got := last[len(last)-1]; got != want {
			t.Errorf("CI=%v: last line %q, want %q", ci, got, want)
		}
	}
	var out bytes.Buffer
	if newReport(&out).summary() {
		t.Error("a run of nothing passed")
	}
}

func TestTheCommandLineNamesWhatThereIs(t *testing.T) {
	o, err := parseOptions([]string{"-suite", "all", "-clients", "kcat,java", "-target", "kafka"})
	if err != nil || !o.full || o.target != "kafka" || !slices.Equal(o.clients, []string{"java", "kcat"}) {
		t.Errorf("parseOptions = %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-suite", "some"}, {"-clients", "rpk"}, {"-sections", "transactions"}, {"stray"}} {
		if _, err := parseOptions(bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestASetOfLibrariesIsInstalledOnceAndAnewWhenAPinChanges(t *testing.T) {
	e := &environment{cache: t.TempDir()}
	pins := filepath.Join(t.TempDir(), "pins.txt")
	installs := 0
	install := func(fail bool) (string, error) {
		return e.installed("lib", []string{pins}, func(dir string) error {
			installs++
			if fail {
				return errors.New("the network is gone")
			}
			_, err := os.Stat(filepath.Join(dir, "pins.txt"))
			return err
		})
	}
	write := func(s string) {
		if err := os.WriteFile(pins, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a==1")
	if _, err := install(true); err == nil {
		t.Fatal("a failed installation passed")
	}
	first, err := install(false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := install(false); err != nil || again != first || installs != 2 {
		t.Errorf("the second time: %s, %v after %d installations, want %s after 2", again, err, installs, first)
	}
	write("a==2")
	if other, err := install(false); err != nil || other == first || installs != 3 {
		t.Errorf("with another pin: %s, %v after %d installations", other, err, installs)
	}
}
