// Package topichits is the actor observer.topichits: it counts, per topic, the bytes
// that are appended on this broker. It is also the actor to copy from.
package topichits

import "github.com/troupe-broker/troupe/actors"

func init() {
	actors.Register(actors.Info{
		Kind: actors.Observer, Name: "topichits", New: func() actors.Actor { return &topicHits{} },
		Doc: "Counts the bytes appended per topic; fails on demand, to show that the broker does not mind.",
	})
}

type topicHits struct {
	PanicAfter int `config:"panic.after"` // panic at this Appended of an instance; 0: never
	heard      int
}

// Provision reads the settings.
func (h *topicHits) Provision(c *actors.Ctx) error { return c.Config(h) }

// Receive counts one fact.
func (h *topicHits) Receive(c *actors.Ctx, msg any) error {
	a, ok := msg.(*actors.Appended)
	if !ok {
		return nil
	}
	h.heard++
	if h.heard == h.PanicAfter {
		panic("panic.after says so")
	}
	c.Count("appended_bytes", float64(a.AppendedBytes), "topic", a.Topic)
	return nil
}
