package actors

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

const (
	seriesCounter = true
	seriesSummary = false
	// labelsMax is the number of words, names and values, of a series.
	labelsMax = 4
	// seriesMax bounds the series of one actor. What is beyond is added to a series
	// with the label value "other".
	seriesMax = 1000
)

// Sample is one series of one actor, for /metrics.
type Sample struct {
	// Actor is the id of the actor.
	Actor string
	// Name is the name in Count or Observe.
	Name string
	// Labels are names and values, in turns.
	Labels []string
	// Counter tells a counter from a summary.
	Counter bool
	// Sum is the counter's value, or the sum of the observed values.
	Sum float64
	// N is how often it was added to.
	N uint64
}

// seriesKey is a map key that costs nothing to make.
type seriesKey struct {
	counter bool
	name    string
	labels  [labelsMax]string
}

type seriesValue struct {
	sum float64
	n   uint64
}

// seriesSet is what one actor counts and observes.
type seriesSet struct {
	mu     sync.Mutex
	values map[seriesKey]*seriesValue
}

func (s *seriesSet) add(counter bool, name string, v float64, labels []string) {
	if len(labels)%2 != 0 || len(labels) > labelsMax {
		panic(fmt.Sprintf("actors: series %s has %d label words; give at most two pairs of name and value", name, len(labels)))
	}
	if counter && v < 0 {
		panic(fmt.Sprintf("actors: counter %s goes down by %v", name, -v))
	}
	key := seriesKey{counter: counter, name: name}
	copy(key.labels[:], labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.values[key]
	if value == nil {
		value = s.open(key)
	}
	value.sum += v
	value.n++
}

// seriesForm is how names of series and labels look, so that any scraper takes them.
var seriesForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// open makes a series, or finds the one for what is too many. mu is held.
func (s *seriesSet) open(key seriesKey) *seriesValue {
	s.checkForm(key)
	if len(s.values) >= seriesMax {
		for i := 1; i < labelsMax && key.labels[i-1] != ""; i += 2 {
			key.labels[i] = "other"
		}
		if value := s.values[key]; value != nil {
			return value
		}
	}
	if s.values == nil {
		s.values = make(map[seriesKey]*seriesValue)
	}
	value := &seriesValue{}
	s.values[key] = value
	return value
}

// checkForm panics when the names are not those of a series, or not those that the
// series had before.
func (s *seriesSet) checkForm(key seriesKey) {
	for _, word := range []string{key.name, cmp.Or(key.labels[0], key.name), cmp.Or(key.labels[2], key.name)} {
		if !seriesForm.MatchString(word) {
			panic(fmt.Sprintf("actors: %q is no name of a series or label: lower-case letters, digits and underscores are", word))
		}
	}
	for known := range s.values {
		if known.counter != key.counter || known.name != key.name {
			continue
		}
		if known.labels[0] != key.labels[0] || known.labels[2] != key.labels[2] {
			panic(fmt.Sprintf("actors: series %s has other labels than before", key.name))
		}
		break
	}
}

// samples lists the series, ordered.
func (s *seriesSet) samples(actor string) []Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Sample, 0, len(s.values))
	for k, v := range s.values {
		labels := k.labels[:]
		for len(labels) > 0 && labels[len(labels)-2] == "" {
			labels = labels[:len(labels)-2]
		}
		out = append(out, Sample{Actor: actor, Name: k.name, Labels: slices.Clone(labels), Counter: k.counter, Sum: v.sum, N: v.n})
	}
	slices.SortFunc(out, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Labels, b.Labels))
	})
	return out
}
