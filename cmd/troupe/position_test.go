package main

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPositionsResolve(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	bounds := span{From: 10, Until: 50}
	byTime := func() (int64, error) { return 33, nil }
	nothingThatYoung := func() (int64, error) { return -1, nil }
	broken := func() (int64, error) { return 0, errors.New("no") }
	for _, c := range []struct {
		text   string
		byTime func() (int64, error)
		want   int64
	}{
		{"start", byTime, 10},
		{"earliest", byTime, 10},
		{"end", byTime, 50},
		{"10", byTime, 10},
		{"50", byTime, 50},
		{"+0", byTime, 10},
		{"+3", byTime, 13},
		{"+100", byTime, 50},
		{"-3", byTime, 47},
		{"-100", byTime, 10},
		{"@2026-01-31", byTime, 33},
		{"@2026-01-31T12:00:00Z", byTime, 33},
		{"@1769860800000", byTime, 33},
		{"@-1h", byTime, 33},
		{"@-1h", nothingThatYoung, 50},
	} {
		p, err := parsePosition(c.text, now)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := p.resolve(bounds, c.byTime); err != nil || got != c.want {
			t.Errorf("%s is %d, %v; want %d", c.text, got, err, c.want)
		}
	}
	for _, outside := range []string{"9", "51"} {
		p, err := parsePosition(outside, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.resolve(bounds, byTime); asFailure(err).Code != codeNotFound {
			t.Errorf("%s: %v", outside, err)
		}
	}
	p, err := parsePosition("@-1h", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.resolve(bounds, broken); err == nil {
		t.Error("the broker's error is lost")
	}
	for _, bad := range []string{"", "x", "@", "@yesterday", "1.5", "--3"} {
		if _, err := parsePosition(bad, now); asFailure(err).Exit != exitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTimesAreRead(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"-90m":                      now.Add(-90 * time.Minute),
		"1769860800000":             now,
		"2026-01-31":                now.Add(-12 * time.Hour),
		"2026-01-31T12:00":          now,
		"2026-01-31T13:00:00+01:00": now,
	} {
		got, err := parseTime(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestFormats(t *testing.T) {
	r := &kgo.Record{
		Topic: "t", Partition: 2, Offset: 7, Key: []byte("k"), Value: []byte("va"), Timestamp: time.UnixMilli(1500).UTC(),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
	for format, want := range map[string]string{
		`%v\n`:               "va\n",
		`%t-%p@%o %k:%v`:     "t-2@7 k:va",
		`%h`:                 "a=1,b=",
		`%T %D`:              "1500 1970-01-01T00:00:01.5Z",
		`%S/%s 100%%\t\\\0|`: "1/2 100%\t\\\x00|",
		``:                   "",
	} {
		f, err := parseFormat(format)
		if err != nil {
			t.Errorf("%q: %v", format, err)
			continue
		}
		if got := string(f.append(nil, r)); got != want {
			t.Errorf("%q prints %q, want %q", format, got, want)
		}
	}
	for _, bad := range []string{`%`, `%q`, `\`, `\x`} {
		if _, err := parseFormat(bad); asFailure(err).Exit != exitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
