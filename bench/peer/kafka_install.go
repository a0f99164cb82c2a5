package peer

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// install is one node as it lies on disk: its configuration, and what each Java program of it is started with.
type install struct {
	dir, config string
	common      []string // arguments of java, before the name of the class
}

// nodeProperties are the lines of server.properties that every node needs, broker and controller at once.
func nodeProperties(id int32, addr, controller, dataDir string) map[string]string {
	return map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(id),
		"listeners":                      "PLAINTEXT://" + addr + ",CONTROLLER://" + controller,
		"advertised.listeners":           "PLAINTEXT://" + addr + ",CONTROLLER://" + controller,
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"inter.broker.listener.name":     "PLAINTEXT",
		"controller.listener.names":      "CONTROLLER",
		"log.dirs":                       dataDir,
		"num.partitions":                 "1",
		"socket.request.max.bytes":       "104857600",
	}
}

// newInstall writes the configuration into dir, which is made.
func newInstall(classPath, dir string, properties map[string]string) (install, error) {
	i := install{dir: dir, config: filepath.Join(dir, "server.properties")}
	logging := filepath.Join(dir, "log4j2.properties")
	i.common = []string{"-Djava.awt.headless=true", "-Dlog4j2.configurationFile=" + logging, "-Dkafka.logs.dir=" + dir, "-cp", classPath}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return i, fmt.Errorf("directory for Kafka: %w", err)
	}
	for path, text := range map[string][]byte{i.config: propertiesFile(properties), logging: []byte(log4j)} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return i, fmt.Errorf("configuration of Kafka: %w", err)
		}
	}
	return i, nil
}

// format lets Kafka's own StorageTool prepare the data directory.
func (i install) format(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "java", slices.Concat([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, i.common,
		[]string{"kafka.tools.StorageTool", "format", "--config", i.config}, args)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting Kafka's storage: %w\n%s", err, out)
	}
	return nil
}

// command starts the node.
func (i install) command(p Profile) Command {
	return Command{
		Path:   "java",
		Args:   slices.Concat(p.flags(), i.common, []string{"kafka.Kafka", i.config}),
		Dir:    i.dir,
		Output: filepath.Join(i.dir, "kafka.log"),
	}
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
