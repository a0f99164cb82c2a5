package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// bridge brings protoactor's log lines into ours. What it calls information is of
// interest to somebody debugging it only.
type bridge struct {
	target *atomic.Pointer[zerolog.SlogHandler]
	rest   func(slog.Handler) slog.Handler // attributes and groups, added later
}

func newBridge(log zerolog.Logger) *bridge {
	b := &bridge{target: new(atomic.Pointer[zerolog.SlogHandler]), rest: func(h slog.Handler) slog.Handler { return h }}
	b.to(log)
	return b
}

func demote(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Enabled asks for the level the line will have.
func (b *bridge) Enabled(ctx context.Context, level slog.Level) bool {
	return b.target.Load().Enabled(ctx, demote(level))
}

// Handle writes the line.
func (b *bridge) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return b.rest(b.target.Load()).Handle(ctx, r)
}

// WithAttrs keeps the bridge around the derived handler.
func (b *bridge) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &bridge{b.target, func(h slog.Handler) slog.Handler { return b.rest(h).WithAttrs(attrs) }}
}

// WithGroup keeps the bridge around the derived handler.
func (b *bridge) WithGroup(name string) slog.Handler {
	return &bridge{b.target, func(h slog.Handler) slog.Handler { return b.rest(h).WithGroup(name) }}
}

// to writes into another logger from now on.
func (b *bridge) to(log zerolog.Logger) {
	b.target.Store(zerolog.NewSlogHandler(log.With().Str("lib", "protoactor").Logger()))
}
