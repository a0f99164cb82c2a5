package peer

import (
	"fmt"
	"strings"
)

// Profile is one way to run the same Kafka.
type Profile struct {
	Name string
	// HeapMB is both the first and the greatest size of the Java heap, in MiB.
	HeapMB int
	// GC are the collector's flags.
	GC []string
	// NetworkThreads, IOThreads: num.network.threads and num.io.threads.
	NetworkThreads, IOThreads int
	// SocketBufferBytes is socket.send.buffer.bytes and socket.receive.buffer.bytes; -1 leaves them to the kernel.
	SocketBufferBytes int
}

// g1 is what kafka-run-class.sh passes to the JVM.
var g1 = []string{
	"-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent",
}

var (
	// Stock is what the release's start script and its server.properties set.
	Stock = Profile{Name: "stock", HeapMB: 1024, GC: g1, NetworkThreads: 3, IOThreads: 8, SocketBufferBytes: 100 << 10}
	// Tuned is for two cores: as many threads as cores, twice the heap, socket buffers that the kernel sizes, and the
	// collector with the least work beside the request path.
	Tuned = Profile{
		Name: "tuned", HeapMB: 2048, GC: []string{"-server", "-XX:+UseParallelGC"},
		NetworkThreads: 2, IOThreads: 2, SocketBufferBytes: -1,
	}
	// Small is for functional tests: it starts a little faster and leaves the memory to others.
	Small = Profile{
		Name: "small", HeapMB: 512, GC: []string{"-server", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"},
		NetworkThreads: 2, IOThreads: 2, SocketBufferBytes: -1,
	}
)

// ProfileNamed finds one of the profiles above.
func ProfileNamed(name string) (Profile, error) {
	profiles := []Profile{Stock, Tuned, Small}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return Profile{}, fmt.Errorf("no Kafka profile %q: there are %s", name, strings.Join(names, ", "))
}

// properties are the profile's lines of server.properties.
func (p Profile) properties() map[string]string {
	return map[string]string{
		"num.network.threads":         fmt.Sprint(p.NetworkThreads),
		"num.io.threads":              fmt.Sprint(p.IOThreads),
		"socket.send.buffer.bytes":    fmt.Sprint(p.SocketBufferBytes),
		"socket.receive.buffer.bytes": fmt.Sprint(p.SocketBufferBytes),
	}
}

// flags are the profile's arguments to java.
func (p Profile) flags() []string {
	return append([]string{fmt.Sprintf("-Xms%dM", p.HeapMB), fmt.Sprintf("-Xmx%dM", p.HeapMB)}, p.GC...)
}
