package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/troupe-broker/troupe/bench/peer"
)

// module is how the repository's root is recognised.
const module = "module github.com/troupe-broker/troupe\n"

// environment is where the suite finds and keeps things.
type environment struct {
	root    string // the repository
	drivers string // the drivers' sources
	cache   string // installed libraries and built programs, kept between runs
	run     string // logs and data of this run
}

func newEnvironment() (*environment, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte(module)) {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, errors.New("the interop suite builds the broker and its drivers from source: run it inside the repository")
		}
		dir = parent
	}
	e := &environment{
		root:    dir,
		drivers: filepath.Join(dir, "bench", "interop", "drivers"),
		cache:   filepath.Join(dir, ".cache", "interop"),
	}
	if err := os.MkdirAll(e.cache, 0o755); err != nil {
		return nil, err
	}
	if e.run, err = os.MkdirTemp("", "troupe-interop-"); err != nil {
		return nil, err
	}
	return e, nil
}

// log is the file that a program of this run prints into.
func (e *environment) log(name string) string { return filepath.Join(e.run, name+".log") }

// file writes a file of this run and gives its path.
func (e *environment) file(name, text string) (string, error) {
	path := filepath.Join(e.run, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// errMissing is wrapped when the machine lacks a language: its clients are skipped.
var errMissing = errors.New("not on this machine")

// installed returns a directory under the cache whose content is made by install from the given files, once. It is
// named by their content, so that a changed pin makes a new one, and a directory without its mark is made anew.
func (e *environment) installed(name string, files []string, install func(dir string) error) (string, error) {
	sum := sha256.New()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("installing %s: %w", name, err)
		}
		sum.Write(fmt.Appendf(nil, "%s %d\n", filepath.Base(f), len(b)))
		sum.Write(b)
	}
	dir := filepath.Join(e.cache, name+"-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	mark := filepath.Join(dir, ".complete")
	if _, err := os.Stat(mark); err == nil {
		return dir, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("installing %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o644); err != nil {
			return "", fmt.Errorf("installing %s: %w", name, err)
		}
	}
	if err := install(dir); err != nil {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	return dir, nil
}

// command runs a program to its end; what it printed goes into the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func lookPath(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: %w", errMissing, err)
		}
	}
	return nil
}

// java compiles the Java driver against the class path of the pinned Kafka.
func (e *environment) java(ctx context.Context) (peer.Command, error) {
	if err := lookPath("java", "javac", "mvn"); err != nil {
		return peer.Command{}, err
	}
	classPath, err := peer.ClassPath(ctx, e.cache)
	if err != nil {
		return peer.Command{}, err
	}
	sources, err := filepath.Glob(filepath.Join(e.drivers, "java", "*.java"))
	if err != nil {
		return peer.Command{}, err
	}
	dir, err := e.installed("java-"+peer.KafkaVersion, sources, func(dir string) error {
		args := []string{"-Xlint:all", "-Werror", "-cp", classPath, "-d", filepath.Join(dir, "classes")}
		for _, s := range sources {
			args = append(args, filepath.Base(s))
		}
		return command(ctx, dir, "javac", args...)
	})
	if err != nil {
		return peer.Command{}, err
	}
	return peer.Command{
		Path: "java",
		Args: []string{
			"-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN",
			"-cp", filepath.Join(dir, "classes") + string(filepath.ListSeparator) + classPath, "Driver",
		},
		Output: e.log("java"),
	}, nil
}

// golang builds the drivers of the Go clients: one binary, told by a flag which of them to be.
func (e *environment) golang(ctx context.Context) (string, error) {
	binary := filepath.Join(e.cache, "go-drivers")
	// Always: the go command knows what has changed.
	if err := command(ctx, filepath.Join(e.drivers, "go"), "go", "build", "-o", binary, "."); err != nil {
		return "", err
	}
	return binary, nil
}

// python makes a virtual environment with the pinned Python clients and names its interpreter.
func (e *environment) python(ctx context.Context) (string, error) {
	if err := lookPath("python3"); err != nil {
		return "", err
	}
	dir, err := e.installed("python", []string{filepath.Join(e.drivers, "python", "requirements.txt")}, func(dir string) error {
		if err := command(ctx, dir, "python3", "-m", "venv", "venv"); err != nil {
			return err
		}
		return command(ctx, dir, "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
			"--only-binary", ":all:", "--requirement", "requirements.txt")
	})
	return filepath.Join(dir, "venv", "bin", "python"), err
}

// node installs kafkajs beside a copy of its driver, by the committed lock file.
func (e *environment) node(ctx context.Context) (string, error) {
	if err := lookPath("node", "npm"); err != nil {
		return "", err
	}
	sources := filepath.Join(e.drivers, "node")
	files := []string{".npmrc", "package.json", "package-lock.json", "kafkajs.js"}
	for i, f := range files {
		files[i] = filepath.Join(sources, f)
	}
	dir, err := e.installed("node", files, func(dir string) error {
		return command(ctx, dir, "npm", "ci", "--silent", "--ignore-scripts")
	})
	return filepath.Join(dir, "kafkajs.js"), err
}

// kcat finds the program, or installs Debian's package where this process may.
func (e *environment) kcat(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("kcat"); err == nil {
		return path, nil
	}
	if err := lookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return "", fmt.Errorf("kcat is %w, and it cannot be installed without root and apt-get", errMissing)
	}
	if err := command(ctx, e.run, "apt-get", "update", "-qq"); err != nil {
		return "", err
	}
	if err := command(ctx, e.run, "apt-get", "install", "-qq", "-y", "--no-install-recommends", "kcat"); err != nil {
		return "", err
	}
	return exec.LookPath("kcat")
}
