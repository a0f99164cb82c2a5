//go:build interop

package peer

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKafkaServesAndStops needs Java and Maven: `make interop` runs it, `go test ./...` does not.
func TestKafkaServesAndStops(t *testing.T) {
	k, err := StartKafka(t.Context(), Options{Profile: Small, FlushMessages: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if k.Properties["log.flush.interval.messages"] != "1" {
		t.Errorf("it runs with properties %v", k.Properties)
	}
	if _, err := os.Stat(filepath.Join(k.DataDir, "meta.properties")); err != nil {
		t.Errorf("its data directory: %v", err)
	}
	u, err := k.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.CPU() < 100*time.Millisecond || u.RssAnonBytes < 32<<20 {
		t.Errorf("a JVM that has just started used %v of CPU and %d bytes", u.CPU(), u.RssAnonBytes)
	}
	if err := k.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	// Its log ends early, since the logging has a shutdown hook of its own; the marker is the last thing it writes.
	if _, err := os.Stat(filepath.Join(k.DataDir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("it did not shut down in order: %v", err)
	}
}
