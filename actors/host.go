package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// HostOptions say which extension actors run, and where.
type HostOptions struct {
	System *runtime.System
	// Parent is the actor below which they are spawned; nil: at the top.
	Parent *runtime.Ref
	// Log gets the lines of the actors.
	Log zerolog.Logger
	// Actors are the declarations to choose from. Default: Registered.
	Actors []Info
	// Enabled are the ids of the actors to run.
	Enabled []string
	// Settings are their settings by key, without the leading "actors.":
	// "observer.topichits.panic.after".
	Settings map[string]string
	// Appends visits the totals of every replica here, for Appended. It is called in
	// turns of the facts actor. Without it nobody hears Appended.
	Appends func(visit func(AppendTotals))
	// AppendedEvery is the interval of Appended. Default: 1 s.
	AppendedEvery time.Duration
}

// Host runs the extension actors of one broker. The broker makes it and tells it the
// facts; authors of actors have no use for it. All methods may be called on a nil
// Host, which runs nobody, and from any goroutine.
type Host struct {
	log       zerolog.Logger
	running   map[string]*running
	order     []*running
	observers []*running
}

// StartHost spawns the enabled actors and waits until each has provisioned its first
// instance. A *ConfigError says what is wrong with Enabled or Settings.
func StartHost(ctx context.Context, o HostOptions) (*Host, error) {
	h := &Host{log: o.Log, running: make(map[string]*running)}
	if err := h.choose(&o); err != nil {
		return nil, err
	}
	for _, r := range h.order {
		ref, err := o.System.Spawn(o.Parent, r.spec())
		if err != nil {
			return nil, h.giveUp(fmt.Errorf("spawn %s: %w", r.info.ID(), err))
		}
		r.ref.Store(ref)
	}
	for _, r := range h.order {
		if err := r.await(ctx, o.System); err != nil {
			return nil, h.giveUp(err)
		}
	}
	if len(h.observers) > 0 && o.Appends != nil {
		feed := &factsActor{host: h, visit: o.Appends, every: cmp.Or(o.AppendedEvery, time.Second)}
		if _, err := o.System.Spawn(o.Parent, CoreInfo("facts").Spec("facts", feed)); err != nil {
			return nil, h.giveUp(fmt.Errorf("spawn facts: %w", err))
		}
	}
	return h, nil
}

// CheckChoice says, without starting anybody, what is wrong with the ids of the actors
// to run and with whose settings are given: a *ConfigError, as from StartHost. Values
// and names of settings are each actor's own, and are checked when it starts.
func CheckChoice(enabled []string, settings map[string]string) error {
	h := &Host{running: make(map[string]*running)}
	return h.choose(&HostOptions{Enabled: enabled, Settings: settings})
}

// Tell tells all observers. It never waits; who has a full mailbox misses the fact.
// from may be nil, for a goroutine that has no Runner.
func (h *Host) Tell(from runtime.Sender, f Fact) {
	if h != nil {
		h.tell(from, f, nil)
	}
}

// Observed reports whether anybody hears facts, so that one need not be made.
func (h *Host) Observed() bool { return h != nil && len(h.observers) > 0 }

// Send sends to one actor, as Ctx.Send does.
func (h *Host) Send(from runtime.Sender, to string, msg any) error {
	return h.send(from, to, wrap(msg))
}

// Stop asks all actors to stop and does not wait. They stop with the System, or with
// their parent, in any case.
func (h *Host) Stop() {
	if h == nil {
		return
	}
	for _, r := range h.order {
		if ref := r.ref.Load(); ref != nil {
			ref.Stop()
		}
	}
}

// Samples lists what all actors count and observe, ordered by actor and name.
func (h *Host) Samples() []Sample {
	if h == nil {
		return nil
	}
	var out []Sample
	for _, r := range h.order {
		out = append(out, r.series.samples(r.info.ID())...)
	}
	return out
}

// Ref is the address of a running actor, for tests.
func (h *Host) Ref(id string) (*runtime.Ref, bool) {
	r, ok := h.running[id]
	if !ok {
		return nil, false
	}
	return r.ref.Load(), true
}

// choose checks what is enabled and its settings.
func (h *Host) choose(o *HostOptions) error {
	known := make(map[string]Info)
	if o.Actors == nil {
		o.Actors = Registered()
	}
	for _, i := range o.Actors {
		if i.Kind != Core {
			known[i.ID()] = i
		}
	}
	for _, id := range o.Enabled {
		info, ok := known[id]
		switch {
		case !ok:
			return &ConfigError{codeUnknownActor, "actors.enabled", fmt.Sprintf("unknown actor %q; this binary has %s", id, listOf(known))}
		case h.running[id] != nil:
			return &ConfigError{codeUnknownActor, "actors.enabled", id + " is named twice"}
		}
		r := &running{
			host: h, info: info, settings: Settings{}, series: &seriesSet{}, provided: make(chan struct{}),
			log: o.Log.With().Str("actor", id).Logger(),
		}
		h.running[id] = r
		h.order = append(h.order, r)
		if info.Kind == Observer {
			h.observers = append(h.observers, r)
		}
	}
	slices.SortFunc(h.order, func(a, b *running) int { return cmp.Compare(a.info.ID(), b.info.ID()) })
	for _, key := range slices.Sorted(maps.Keys(o.Settings)) {
		if err := h.setting(known, key, o.Settings[key]); err != nil {
			return err
		}
	}
	return nil
}

// setting gives a key to the actor that it names.
func (h *Host) setting(known map[string]Info, key, value string) error {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 3 {
		return &ConfigError{codeBadSetting, "actors." + key, "a setting of an actor is named actors.<kind>.<actor>.<key>"}
	}
	id := parts[0] + "." + parts[1]
	r, ok := h.running[id]
	switch _, exists := known[id]; {
	case !exists:
		return &ConfigError{codeUnknownActor, "actors." + key, fmt.Sprintf("unknown actor %q; this binary has %s", id, listOf(known))}
	case !ok:
		return &ConfigError{codeBadSetting, "actors." + key, id + " does not run; add it to actors.enabled, or remove its settings"}
	}
	r.settings[parts[2]] = value
	return nil
}

// giveUp stops what was started.
func (h *Host) giveUp(why error) error {
	h.Stop()
	return why
}

// await waits for the first Provision.
func (r *running) await(ctx context.Context, sys *runtime.System) error {
	if err := sys.Await(ctx, r.provided); err != nil {
		return fmt.Errorf("%s: %s does not start: %w", codeNotProvided, r.info.ID(), err)
	}
	var bad *ConfigError
	switch err := r.outcome; {
	case errors.As(err, &bad):
		return bad
	case err != nil:
		return fmt.Errorf("%s: %s refuses to start: %w", codeNotProvided, r.info.ID(), err)
	}
	return nil
}

// send sends to one actor by id.
func (h *Host) send(from runtime.Sender, to string, m runtime.Message) error {
	r, ok := h.running[to]
	if !ok {
		return fmt.Errorf("send to %s: no such actor runs", to)
	}
	ref := r.ref.Load()
	if ref == nil {
		return fmt.Errorf("send to %s: it has not started yet", to)
	}
	if err := from.Send(ref, m); err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// tell sends to all observers but one. What is refused is lost and counted by the
// receiver's mailbox.
func (h *Host) tell(from runtime.Sender, m runtime.Message, but *running) {
	for _, r := range h.observers {
		ref := r.ref.Load()
		switch {
		case r == but || ref == nil:
		case from == nil:
			_ = ref.Post(m)
		default:
			_ = from.Send(ref, m)
		}
	}
}
