package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// devRun is one `troupe dev` with what it said when its brokers served.
type devRun struct {
	devCluster
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err string // file
}

func launchDev(t *testing.T, args ...string) *devRun {
	t.Helper()
	d := &devRun{t: t, err: filepath.Join(t.TempDir(), "stderr")}
	log, err := os.Create(d.err)
	if err != nil {
		t.Fatal(err)
	}
	d.cmd = exec.Command(builtBinary(t), append([]string{"dev", "--port", "0", "-o", "json"}, args...)...)
	d.cmd.Env, d.cmd.Stderr = environment("TMPDIR="+t.TempDir()), log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has ended, unless the test has failed
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("troupe dev printed:\n%s", d.said())
		}
	})
	d.out = bufio.NewReader(out)
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("it said nothing: %v\n%s", err, d.said())
	}
	if err := json.Unmarshal(line, &d.devCluster); err != nil {
		t.Fatalf("it said %q: %v", line, err)
	}
	return d
}

func (d *devRun) said() string {
	d.t.Helper()
	b, err := os.ReadFile(d.err)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func (d *devRun) tell(verbs ...string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, strings.Join(verbs, "\n")+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// status is the next one that is printed.
func (d *devRun) status() (s devStatus) {
	d.t.Helper()
	dec := json.NewDecoder(d.out)
	if err := dec.Decode(&s); err != nil {
		d.t.Fatalf("no status: %v", err)
	}
	d.out = bufio.NewReader(io.MultiReader(dec.Buffered(), d.out))
	return s
}

// ended waits for the exit and returns its code; all brokers are gone with it.
func (d *devRun) ended() int {
	d.t.Helper()
	err := d.cmd.Wait()
	if status := (*exec.ExitError)(nil); err != nil && !errors.As(err, &status) {
		d.t.Fatal(err)
	}
	for _, b := range d.Brokers {
		for { // the kernel kills them when their parent is gone
			c, err := net.Dial("tcp", b.Address)
			if errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
			if err == nil {
				_ = c.Close()
			}
		}
	}
	return d.cmd.ProcessState.ExitCode()
}

func TestDevKillsAndCutsOffAndLeavesNothingBehind(t *testing.T) {
	d := launchDev(t)
	if len(d.Brokers) != 3 || strings.Count(d.Bootstrap, ",") != 2 || d.Cluster == "" || !d.Temporary {
		t.Fatalf("%+v", d.devCluster)
	}
	topic := troupe(t, "", nil, "topic", "create", "orders", "--partitions", "3", "--replication-factor", "3", "--bootstrap", d.Bootstrap)
	if topic.code != exitDone {
		t.Fatal(topic.err)
	}
	d.tell("kill 1", "pause 1", "start 2", "wait", "status")
	s := d.status()
	if s.Processes[0].State != "down" || s.Processes[1].State != "serving" || s.Cluster.Brokers[0].State != "fenced" || s.Cluster.Partitions.UnderReplicated != 3 {
		t.Errorf("without broker 1: %+v, %+v", s.Processes, s.Cluster)
	}
	d.tell("start 1", "wait", "partition 2", "wait", "status")
	s = d.status()
	if cut := s.Processes[1].Cut; len(cut) != 2 || s.Processes[1].State != "serving" || s.Cluster.Brokers[1].State != "fenced" || s.Cluster.Controller == 2 || s.Cluster.Brokers[0].State != "serving" {
		t.Errorf("without a way to broker 2: %+v, %+v", s.Processes, s.Cluster)
	}
	d.tell("heal", "wait", "pause 3", "stop 3", "partition", "explode", "kill 7", "start 3", "wait", "status", "quit")
	s = d.status()
	for i, b := range s.Cluster.Brokers {
		if b.State != "serving" || s.Processes[i].Cut != nil || s.Processes[i].State != "serving" {
			t.Errorf("in the end: %+v, %+v", b, s.Processes[i])
		}
	}
	if s.Cluster.Partitions.UnderReplicated != 0 {
		t.Errorf("in the end: %+v", s.Cluster.Partitions)
	}
	if code := d.ended(); code != exitFailed {
		t.Errorf("exit %d after verbs that failed", code)
	}
	for _, want := range []string{
		"broker 1 is down", "broker 2 runs", "broker 2 reaches no more: 1, 3", `there is no verb \"explode\"`, "one of: kill, stop", `there is no broker \"7\"`, "partition needs the number", "all brokers have stopped",
	} {
		if !strings.Contains(d.said(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if _, err := os.Stat(d.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory %s is there: %v", d.DataDir, err)
	}
}

// TestDevComesBack ends by a signal, and without one: nobody outlives it, and the cluster is there the next time.
func TestDevComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	d := launchDev(t, "--data-dir", dir, "--nodes", "2")
	first := d.Cluster
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := d.ended(); code != exitDone {
		t.Errorf("exit %d after a signal\n%s", code, d.said())
	}
	d = launchDev(t, "--data-dir", dir, "--nodes", "2")
	if d.Cluster != first || d.DataDir != dir || d.Temporary {
		t.Errorf("%+v; the cluster was %s", d.devCluster, first)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.ended()
}

func TestDevSaysWhatIsWrong(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	file := filepath.Join(t.TempDir(), "file")
	writeOver(t, file, nil)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--nodes", "0"}, exitUsage, "--nodes 1 to 9"},
		{[]string{"--nodes", "10"}, exitUsage, "--nodes 1 to 9"},
		{[]string{"--port", "-1"}, exitUsage, "--port 9092"},
		{[]string{"--port", fmt.Sprint(l.Addr().(*net.TCPAddr).Port)}, exitFailed, "--port 0 any that are free"},
		{[]string{"-X", "node.id=4"}, exitUsage, "troupe dev sets node.id itself"},
		{[]string{"-X", "peer.listen=127.0.0.1:1"}, exitUsage, "leave it out"},
		{[]string{"-X", "retention"}, exitUsage, "TRP-10"},
		{[]string{"--port", "0", "-X", "foo=bar"}, exitUsage, "troupe: TRP-1004: flag -X: unknown config foo"},
		{[]string{"--port", "0", "-X", "log.retention.ms=soon"}, exitUsage, "log.retention.ms"},
		{[]string{"--port", "0", "--log-level", "loud"}, exitUsage, "--log-level debug"},
		{[]string{"--data-dir", filepath.Join(file, "below")}, exitFailed, "--data-dir DIR"},
		{[]string{"surplus"}, exitUsage, "usage: troupe dev"},
	} {
		if r := troupe(t, "", nil, append([]string{"dev"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: exit %d, %q; want %d and %q", c.args, r.code, r.err, c.code, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "troupe-dev-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
