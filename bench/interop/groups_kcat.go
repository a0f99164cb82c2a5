package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// kcatMember is one run of `kcat -G`. It commits by librdkafka's own interval and says nothing of it; what it prints, the suite
// writes into its journal.
type kcatMember struct {
	command *exec.Cmd
	journal *os.File
	done    chan error // of the reader of its output
}

func (k *kcat) join(ctx context.Context, m membership) (*kcatMember, error) {
	journal, err := os.Create(m.Log)
	if err != nil {
		return nil, err
	}
	args := []string{
		"-b", k.bootstrap, "-q", "-u", "-f", "%t %p %o\n",
		"-X", "auto.offset.reset=" + m.Reset, "-X", "partition.assignment.strategy=" + m.Assignor, "-X", "auto.commit.interval.ms=100",
		"-X", fmt.Sprintf("session.timeout.ms=%d", m.SessionMs), "-X", fmt.Sprintf("heartbeat.interval.ms=%d", m.SessionMs/10), "-X", "fetch.wait.max.ms=100",
		"-G", m.Group,
	}
	member := &kcatMember{command: exec.CommandContext(ctx, k.path, append(args, m.Topics...)...), journal: journal, done: make(chan error, 1)}
	output, err := member.command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	var complaints strings.Builder
	member.command.Stderr = &complaints
	if err := member.command.Start(); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	go func() { member.done <- member.follow(output) }()
	return member, nil
}

func (m *kcatMember) follow(output io.Reader) error {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, err := fmt.Fprintf(m.journal, "got %d %s\n", time.Now().UnixMilli(), lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// leave ends the program as a person at the keyboard does.
func (m *kcatMember) leave() error {
	if err := m.command.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	return m.end()
}

func (m *kcatMember) kill() error {
	if err := m.command.Process.Kill(); err != nil {
		return err
	}
	if err := m.end(); err != nil {
		if _, killed := errors.AsType[*exec.ExitError](err); !killed {
			return err
		}
	}
	return nil
}

func (m *kcatMember) end() error {
	return errors.Join(<-m.done, m.command.Wait(), m.journal.Close())
}
