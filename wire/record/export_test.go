package record

import "github.com/troupe-broker/troupe/wire/ident"

// Walked is what a walk over the records of an uncompressed batch finds.
type Walked struct {
	MaxTimestamp ident.Millis
	MaxDelta     int32
}

// Skim is the fast walk alone; not ok: it leaves the batch to the slow one.
func Skim(v View, now ident.Millis, r *Rules) (Walked, bool) {
	w := walk{rules: r, now: now, count: v.Count(), control: v.Attributes().Control()}
	ok := w.skim(v)
	return Walked{w.maxTimestamp, w.maxDelta}, ok
}

// SlowWalk is the walk that judges, without the fast one before it.
func SlowWalk(v View, now ident.Millis, r *Rules) (Walked, error) {
	var kept []byte
	w := walk{rules: r, now: now, count: v.Count(), control: v.Attributes().Control(), keep: &kept}
	err := w.run(v)
	return Walked{w.maxTimestamp, w.maxDelta}, err
}
