package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Troupe is one broker of ours as it can be started, again and again: at the same addresses, on the same data.
type Troupe struct {
	Addr    string  // where clients connect, HOST:PORT on the loopback interface
	Monitor string  // where its metrics are
	Command Command // starts it; CPUs and Dir may be filled in
}

// NewTroupe describes a broker that keeps its data in dataDir and prints to output, on ports that were free a moment ago. settings are KEY=VALUE for -X.
func NewTroupe(binary, dataDir, output string, settings ...string) (Troupe, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return Troupe{}, err
	}
	t := Troupe{Addr: fmt.Sprintf("127.0.0.1:%d", ports[0]), Monitor: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	args := []string{"serve", "--listen", t.Addr, "--data-dir", dataDir, "-X", "metrics.listen=" + t.Monitor}
	for _, s := range settings {
		args = append(args, "-X", s)
	}
	t.Command = Command{Path: binary, Args: args, Output: output}
	return t, nil
}

// BuildTroupe builds the broker of the checkout that is the current directory, as it is shipped, into dir, and returns the path of the binary. One that is
// given is returned as it is.
func BuildTroupe(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return given, nil
	}
	binary := filepath.Join(dir, "troupe.bin")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/troupe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ./cmd/troupe (run this from the checkout, or give -troupe): %w\n%s", err, out)
	}
	return binary, nil
}
