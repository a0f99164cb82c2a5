package store

import (
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// runsFile names the runs of the broker that have had the directory, one a line, the newest last.
	runsFile = "broker-runs"
	// runsMax bounds them. Older ones matter only to a broker that has been started as often without being registered once.
	runsMax = 256
)

// NoteRun writes down, durably, that a run of the broker has the directory, and returns the runs that had it before, the newest last. If the last run that the
// rest of the cluster knows of is none of them, then that one had other files: these were copied or put back from an earlier day. A lost or damaged list is an
// empty one. On a full disk this run is not written down, so that the next start believes less than it could.
func (d *Directory) NoteRun(run [16]byte) (before [][16]byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := readFile(d.o.FS, filepath.Join(d.o.Path, runsFile))
	if err == nil {
		before, err = decodeRuns(b)
	}
	if err != nil && !isObstructed(err) && !errors.Is(err, ErrFormat) {
		return nil, d.health.sift(err, "read "+runsFile)
	}
	all := append(slices.Clip(before), run)
	if err := d.replace(runsFile, encodeRuns(all[max(len(all)-runsMax, 0):])); err != nil && !errors.Is(err, ErrNoSpace) {
		return nil, err
	}
	return before, nil
}

func encodeRuns(runs [][16]byte) []byte {
	var text []byte
	for _, r := range runs {
		text = append(hex.AppendEncode(text, r[:]), '\n')
	}
	return seal(text)
}

func decodeRuns(b []byte) ([][16]byte, error) {
	text, err := unseal(b)
	if err != nil {
		return nil, err
	}
	var runs [][16]byte
	for line := range strings.Lines(string(text)) {
		r, err := hex.DecodeString(strings.TrimSuffix(line, "\n"))
		if err != nil || len(r) != 16 {
			return nil, errors.Join(ErrFormat, err)
		}
		runs = append(runs, [16]byte(r))
	}
	return runs, nil
}
