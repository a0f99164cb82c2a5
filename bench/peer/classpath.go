package peer

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// KafkaVersion is the release that pom.xml pins. A test keeps the two equal.
const KafkaVersion = "4.4.0"

//go:embed pom.xml
var pom []byte

// dependencyPlugin resolves the class path. It is named in full so that two machines run the same one.
const dependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:2.8:build-classpath"

// ErrNoJava is wrapped when the machine cannot run Kafka at all: no java, or no mvn to fetch its jars.
var ErrNoJava = errors.New("running Apache Kafka takes Java 17 and Maven")

// ClassPath gives the class path of the pinned Kafka server and tools. The first call on a machine lets Maven fetch
// the jars; the answer is kept in cacheDir (empty: "troupe" below the user's cache directory) under a name made of
// pom.xml, and taken from there as long as each jar of it exists.
func ClassPath(ctx context.Context, cacheDir string) (string, error) {
	if cacheDir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("class path of Kafka: %w", err)
		}
		cacheDir = filepath.Join(user, "troupe")
	}
	sum := sha256.Sum256(append([]byte(dependencyPlugin+"\n"), pom...))
	dir := filepath.Join(cacheDir, "kafka-"+KafkaVersion+"-"+hex.EncodeToString(sum[:6]))
	answer := filepath.Join(dir, "classpath")
	if cached, err := os.ReadFile(answer); err == nil && complete(string(cached)) {
		return string(cached), nil
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoJava, err)
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoJava, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("class path of Kafka: %w", err)
	}
	project := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(project, pom, 0o644); err != nil {
		return "", fmt.Errorf("class path of Kafka: %w", err)
	}
	fresh := filepath.Join(dir, "classpath.new")
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", project, dependencyPlugin, "-Dmdep.outputFile="+fresh)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("resolving Kafka %s with Maven: %w\n%s", KafkaVersion, err, out)
	}
	resolved, err := os.ReadFile(fresh)
	if err != nil {
		return "", fmt.Errorf("class path of Kafka %s: Maven resolved it and wrote nothing: %w", KafkaVersion, err)
	}
	path := strings.TrimSpace(string(resolved))
	if !complete(path) {
		return "", fmt.Errorf("class path of Kafka %s as Maven resolved it has missing jars: %s", KafkaVersion, path)
	}
	// By rename, so that a reader never sees half of it.
	if err := os.WriteFile(fresh, []byte(path), 0o644); err != nil {
		return "", fmt.Errorf("class path of Kafka: %w", err)
	}
	if err := os.Rename(fresh, answer); err != nil {
		return "", fmt.Errorf("class path of Kafka: %w", err)
	}
	return path, nil
}

// complete says whether path names at least one jar and each of them exists.
func complete(path string) bool {
	if path == "" {
		return false
	}
	for _, jar := range filepath.SplitList(path) {
		if _, err := os.Stat(jar); err != nil {
			return false
		}
	}
	return true
}
