package main

import (
	"encoding/json"
	"io"
)

// rawLog keeps what was measured, and writes each value as it is taken.
type rawLog struct {
	w       io.Writer
	trials  []trialLine
	latency []latencyLine
	idle    []idleLine

	manyLines []manyLine
}

func (r *rawLog) add(line any) error {
	switch line := line.(type) {
	case trialLine:
		r.trials = append(r.trials, line)
	case latencyLine:
		r.latency = append(r.latency, line)
	case idleLine:
		r.idle = append(r.idle, line)
	case manyLine:
		r.manyLines = append(r.manyLines, line)
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(text, '\n'))
	return err
}
