package broker_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/troupe-broker/troupe/actors/broker"
)

// TestMain lets twice as many tests of three brokers run beside each other as there are processors: they wait for timers of seconds, and compute little. The race
// detector makes them compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if beside := flag.Lookup("test.parallel"); !broker.RaceEnabled && beside.Value.String() == beside.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // it is a number
	}
	os.Exit(m.Run())
}
