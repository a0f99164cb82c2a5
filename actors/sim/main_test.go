package sim_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has garbage collected less often than usual. A world is a few megabytes that live and many that do not.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
