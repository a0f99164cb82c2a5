package peer

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options say which Kafka to start. The zero value is a stock, cached one in a temporary directory.
type Options struct {
	// Profile defaults to Stock.
	Profile Profile
	// FlushMessages is log.flush.interval.messages: 0 leaves Kafka's default (never, class cached), 1 waits for the
	// disk in each append (class synced).
	FlushMessages int64
	// Properties are further lines of server.properties; they win over what the profile sets.
	Properties map[string]string
	// Dir receives data and logs. It is the caller's to remove.
	Dir string
	// CacheDir keeps the resolved class path; see ClassPath.
	CacheDir string
	// CPUs keeps the node on these processors; empty leaves it to the scheduler.
	CPUs []int
	// StartTimeout bounds the time from exec to the first answer; 0 means 60 s.
	StartTimeout time.Duration
}

// Kafka is one running node, broker and controller at once.
type Kafka struct {
	*Process
	// Addr is where clients connect, HOST:PORT on the loopback interface.
	Addr string
	// DataDir is its log directory: the partitions' directories lie in it. LogFile has what it printed.
	DataDir, LogFile string
	// Properties is its server.properties as started.
	Properties map[string]string
	// Profile and Synced name the row that its figures belong to.
	Profile Profile
	Synced  bool
}

// startTries bounds how often a node is started anew when another process took its port between the choice and the
// bind.
const startTries = 3

// StartKafka formats a storage directory, starts one node and returns when it answers ApiVersions.
func StartKafka(ctx context.Context, o Options) (*Kafka, error) {
	if o.Profile.Name == "" {
		o.Profile = Stock
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = time.Minute
	}
	classPath, err := ClassPath(ctx, o.CacheDir)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		k, err := startOnce(ctx, o, classPath, filepath.Join(o.Dir, fmt.Sprintf("try-%d", try)))
		if err == nil {
			return k, nil
		}
		if try == startTries || !errors.Is(err, errPortTaken) {
			return nil, err // the directory stays: the log in it says why
		}
	}
}

var errPortTaken = errors.New("port taken")

func startOnce(ctx context.Context, o Options, classPath, dir string) (*Kafka, error) {
	k := &Kafka{
		DataDir: filepath.Join(dir, "data"),
		Profile: o.Profile,
		Synced:  o.FlushMessages == 1,
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory for Kafka: %w", err)
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	k.Addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	controller := fmt.Sprintf("127.0.0.1:%d", ports[1])

	k.Properties = nodeProperties(1, k.Addr, controller, k.DataDir)
	maps.Copy(k.Properties, map[string]string{
		"controller.quorum.bootstrap.servers":              controller,
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
	})
	if o.FlushMessages > 0 {
		k.Properties["log.flush.interval.messages"] = fmt.Sprint(o.FlushMessages)
	}
	maps.Copy(k.Properties, o.Profile.properties())
	maps.Copy(k.Properties, o.Properties)
	install, err := newInstall(classPath, dir, k.Properties)
	if err != nil {
		return nil, err
	}
	if err := install.format(ctx, "--cluster-id", randomID(), "--standalone"); err != nil {
		return nil, err
	}
	command := install.command(o.Profile)
	command.CPUs = o.CPUs
	k.LogFile = command.Output
	if k.Process, err = Start(command); err != nil {
		return nil, err
	}
	if err := AwaitReady(ctx, k.Process, k.Addr, o.StartTimeout); err != nil {
		tail := Tail(k.LogFile, 30)
		if strings.Contains(tail, "Address already in use") || strings.Contains(tail, "Socket server failed to bind") {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return nil, errors.Join(fmt.Errorf("the node does not serve: %w\nlast lines of %s:\n%s", err, k.LogFile, tail), k.Kill())
	}
	return k, nil
}

// randomID is a cluster id as Kafka writes it: a random UUID in URL-safe base64 without padding.
func randomID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic("the system has no randomness: " + err.Error())
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return base64.RawURLEncoding.EncodeToString(id[:])
}
