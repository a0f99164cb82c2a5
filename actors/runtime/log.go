package runtime

import (
	"context"
	"log/slog"

	"github.com/rs/zerolog"
)

// bridge brings protoactor's log lines into ours. What it calls information is of
// interest to somebody debugging it only.
type bridge struct {
	slog.Handler
}

func newBridge(log zerolog.Logger) *slog.Logger {
	return slog.New(bridge{zerolog.NewSlogHandler(log)}).With("lib", "protoactor")
}

func demote(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Enabled asks for the level the line will have.
func (b bridge) Enabled(ctx context.Context, level slog.Level) bool {
	return b.Handler.Enabled(ctx, demote(level))
}

// Handle writes the line.
func (b bridge) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return b.Handler.Handle(ctx, r)
}

// WithAttrs keeps the bridge around the derived handler.
func (b bridge) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bridge{b.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the bridge around the derived handler.
func (b bridge) WithGroup(name string) slog.Handler { return bridge{b.Handler.WithGroup(name)} }
