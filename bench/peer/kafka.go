package peer

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// Dir receives data and logs and is left alone by Stop. Empty: a temporary directory, removed by Stop.
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

	scratch string // removed by Stop; empty when the caller named the directory
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
	scratch := ""
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "troupe-kafka-"); err != nil {
			return nil, fmt.Errorf("directory for Kafka: %w", err)
		}
		scratch = o.Dir
	}
	for try := 1; ; try++ {
		k, err := startOnce(ctx, o, classPath, filepath.Join(o.Dir, fmt.Sprintf("try-%d", try)))
		if err == nil {
			k.scratch = scratch
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
		LogFile: filepath.Join(dir, "kafka.log"),
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

	k.Properties = map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.bootstrap.servers":              controller,
		"listeners":                                        "PLAINTEXT://" + k.Addr + ",CONTROLLER://" + controller,
		"advertised.listeners":                             "PLAINTEXT://" + k.Addr + ",CONTROLLER://" + controller,
		"listener.security.protocol.map":                   "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"inter.broker.listener.name":                       "PLAINTEXT",
		"controller.listener.names":                        "CONTROLLER",
		"log.dirs":                                         k.DataDir,
		"num.partitions":                                   "1",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"socket.request.max.bytes":                         "104857600",
	}
	if o.FlushMessages > 0 {
		k.Properties["log.flush.interval.messages"] = fmt.Sprint(o.FlushMessages)
	}
	maps.Copy(k.Properties, o.Profile.properties())
	maps.Copy(k.Properties, o.Properties)

	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, propertiesFile(k.Properties), 0o644); err != nil {
		return nil, fmt.Errorf("configuration of Kafka: %w", err)
	}
	logging := filepath.Join(dir, "log4j2.properties")
	if err := os.WriteFile(logging, []byte(log4j), 0o644); err != nil {
		return nil, fmt.Errorf("configuration of Kafka: %w", err)
	}
	common := []string{"-Djava.awt.headless=true", "-Dlog4j2.configurationFile=" + logging, "-Dkafka.logs.dir=" + dir, "-cp", classPath}

	format := exec.CommandContext(ctx, "java", slices.Concat([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, common, []string{
		"kafka.tools.StorageTool", "format", "--config", config, "--cluster-id", randomID(), "--standalone",
	})...)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("formatting Kafka's storage: %w\n%s", err, out)
	}
	k.Process, err = Start(Command{
		Path:   "java",
		Args:   slices.Concat(o.Profile.flags(), common, []string{"kafka.Kafka", config}),
		Dir:    dir,
		Output: k.LogFile,
		CPUs:   o.CPUs,
	})
	if err != nil {
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

// Class is the durability class that the node's figures belong to.
func (k *Kafka) Class() string {
	if k.Synced {
		return "synced"
	}
	return "cached"
}

// Stop ends the node in order and removes its directory if StartKafka made it.
func (k *Kafka) Stop(ctx context.Context) error {
	err := k.Process.Stop(ctx)
	if k.scratch != "" {
		err = errors.Join(err, os.RemoveAll(k.scratch))
	}
	return err
}

// propertiesFile renders a Java properties file. The values here are ASCII and hold nothing but backslashes that
// would need an escape.
func propertiesFile(p map[string]string) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p)) {
		b.WriteString(key + "=" + strings.ReplaceAll(p[key], `\`, `\\`) + "\n")
	}
	return []byte(b.String())
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

// log4j sends what Kafka logs to standard output, at the levels of the release's own file.
const log4j = `appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
logger.request.name=kafka.request.logger
logger.request.level=WARN
logger.channel.name=kafka.network.RequestChannel$
logger.channel.level=WARN
logger.controller.name=org.apache.kafka.controller
logger.controller.level=INFO
logger.cleaner.name=org.apache.kafka.storage.internals.log.LogCleaner
logger.cleaner.level=INFO
`
