package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// monitor serves /metrics, /readyz and /groups. It listens before the broker starts, so that an address in use stops the start, and a
// probe that comes early is told to come again.
type monitor struct {
	Address net.Addr

	server  *http.Server
	ended   chan error
	metrics atomic.Pointer[http.Handler]
	ready   atomic.Pointer[http.Handler]
	groups  atomic.Pointer[http.Handler]
}

// startMonitor listens at an address; an empty one means that nothing is served, and gives nil.
func startMonitor(ctx context.Context, listen string) (*monitor, error) {
	if listen == "" {
		return nil, nil //nolint:nilnil // no monitor is what was asked for
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fail(codeListen, "-X metrics.listen=HOST:PORT takes another address, -X metrics.listen= none", "metrics: %w", err)
	}
	m := &monitor{Address: listener.Addr(), ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", later(&m.metrics))
	mux.Handle("GET /readyz", later(&m.ready))
	mux.Handle("GET /groups", later(&m.groups))
	m.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go func() { m.ended <- m.server.Serve(listener) }() // stop waits for it
	return m, nil
}

// later answers 503 until there is a handler.
func later(handler *atomic.Pointer[http.Handler]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := handler.Load()
		if h == nil {
			http.Error(w, "not ready: the broker is starting", http.StatusServiceUnavailable)
			return
		}
		(*h).ServeHTTP(w, r)
	})
}

// attach lets the broker answer from now on.
func (m *monitor) attach(metrics, ready, groups http.Handler) {
	if m == nil {
		return
	}
	m.metrics.Store(&metrics)
	m.ready.Store(&ready)
	m.groups.Store(&groups)
}

// stop ends the server; answers under way get a moment.
func (m *monitor) stop() error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := m.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = m.server.Close()
	}
	if ended := <-m.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop the metrics server: %w", err)
	}
	return nil
}
