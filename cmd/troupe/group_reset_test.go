package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTopicsAndPartitionsAreChosen(t *testing.T) {
	for _, c := range []struct {
		specs []string
		want  map[string][]int32 // nil: refused
	}{
		{[]string{"orders"}, map[string][]int32{"orders": nil}},
		{[]string{"orders:2,0", "payments"}, map[string][]int32{"orders": {2, 0}, "payments": nil}},
		{[]string{"orders:1", "orders:2,1"}, map[string][]int32{"orders": {1, 2}}},
		{[]string{"orders", "orders:1"}, nil},
		{[]string{"orders", "orders"}, nil},
		{[]string{""}, nil},
		{[]string{":1"}, nil},
		{[]string{"orders:"}, nil},
		{[]string{"orders:-1"}, nil},
		{[]string{"orders:one"}, nil},
		{[]string{"orders:4294967296"}, nil},
	} {
		got, err := parseTopicSpecs("--topic ", c.specs)
		if (err == nil) != (c.want != nil) || err == nil && !maps.EqualFunc(got, c.want, slices.Equal[[]int32]) {
			t.Errorf("%q: %v, %v; want %v", c.specs, got, err, c.want)
		}
	}
}

func TestDurationsAreThoseOfISOAndOfGo(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT1H30M": 90 * time.Minute, "P2D": 48 * time.Hour, "P1W": 7 * 24 * time.Hour, "P1DT12H": 36 * time.Hour, "PT0.5S": 500 * time.Millisecond, "PT0S": 0,
		"90m": 90 * time.Minute, "1h30m": 90 * time.Minute,
	} {
		if got, err := parseISODuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "P", "PT", "P1DT", "1D", "P1Y", "P1M", "-PT1H", "-1h", "PT1H1H", "P99999999999W", "soon"} {
		if got, err := parseISODuration(bad); err == nil {
			t.Errorf("%q was taken for %v", bad, got)
		}
	}
}

func TestAFileOfOffsetsIsRead(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[partitionKey]int64 // nil: refused
	}{
		{"orders,0,5\norders,1,7\n", map[partitionKey]int64{{"orders", 0}: 5, {"orders", 1}: 7}},
		{"\"orders\",0,5\r\n\n", map[partitionKey]int64{{"orders", 0}: 5}},
		{"g,orders,0,5\nother,orders,0,9\n", map[partitionKey]int64{{"orders", 0}: 5}},
		{"other,orders,0,9\n", nil},
		{"", nil},
		{"orders,0\n", nil},
		{"orders,zero,5\n", nil},
		{"orders,0,-5\n", nil},
		{"orders,0,5\norders,0,6\n", nil},
		{",0,5\n", nil},
	} {
		got, err := readResetFile(strings.NewReader(c.text), "g")
		if (err == nil) != (c.want != nil) || err == nil && !maps.Equal(got, c.want) {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestAResetStaysWithinTheLog(t *testing.T) {
	key, log := partitionKey{"orders", 0}, span{From: 10, Until: 20}
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		plan resetPlan
		old  *int64
		want int64 // -1: refused
	}{
		{resetPlan{scenario: "to-earliest"}, nil, 10},
		{resetPlan{scenario: "to-latest"}, nil, 20},
		{resetPlan{scenario: "to-current"}, at(12), 12},
		{resetPlan{scenario: "to-current"}, nil, 20},
		{resetPlan{scenario: "to-offset", n: 15}, nil, 15},
		{resetPlan{scenario: "to-offset", n: 5}, nil, 10},
		{resetPlan{scenario: "to-offset", n: 50}, nil, 20},
		{resetPlan{scenario: "shift-by", n: -3}, at(15), 12},
		{resetPlan{scenario: "shift-by", n: 30}, at(15), 20},
		{resetPlan{scenario: "shift-by", n: -30}, at(15), 10},
		{resetPlan{scenario: "shift-by", n: 1}, nil, -1},
		{resetPlan{scenario: "from-file", listed: map[partitionKey]int64{key: 11}}, nil, 11},
		{resetPlan{scenario: "from-file", listed: map[partitionKey]int64{key: 99}}, nil, 20},
	} {
		got, err := c.plan.offset(key, log, c.old, nil)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%+v: %d, %v; want %d", c.plan, got, err, c.want)
		}
	}
}
