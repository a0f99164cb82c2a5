package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/troupe-broker/troupe/bench/peer"
)

// clientNames are all clients, in the order of the report. "java" comes first: its driver also runs the tools.
var clientNames = []string{"java", "franz-go", "sarama", "sarama-max", "kafka-go", "confluent", "aiokafka", "kafka-python", "kafkajs", "kcat"}

// actor is one client that takes part.
type actor struct {
	client
	hello hello
	// cells are the ways in which it can write; cell i is in partition i of its topic.
	cells []cell
}

func (a *actor) who() who { return who{a.hello.Client, a.hello.Version} }

func (a *actor) topic() string { return "interop-" + a.hello.Client }

// commands are how to start the named clients. A client that cannot be had here has an error instead.
type commands struct {
	drivers map[string]peer.Command
	errs    map[string]error
}

// languages are the installations: which clients each is for, and what it gives for each of them.
var languages = []struct {
	clients []string
	install func(ctx context.Context, e *environment) (func(client string) peer.Command, error)
}{
	{[]string{"java"}, func(ctx context.Context, e *environment) (func(string) peer.Command, error) {
		command, err := e.java(ctx)
		return func(string) peer.Command { return command }, err
	}},
	{[]string{"franz-go", "sarama", "sarama-max", "kafka-go"}, func(ctx context.Context, e *environment) (func(string) peer.Command, error) {
		binary, err := e.golang(ctx)
		return func(client string) peer.Command {
			return peer.Command{Path: binary, Args: []string{"-client", client}, Output: e.log(client)}
		}, err
	}},
	{[]string{"confluent", "aiokafka", "kafka-python"}, func(ctx context.Context, e *environment) (func(string) peer.Command, error) {
		interpreter, err := e.python(ctx)
		scripts := map[string]string{"confluent": "confluent.py", "aiokafka": "aio.py", "kafka-python": "kpython.py"}
		return func(client string) peer.Command {
			script := filepath.Join(e.drivers, "python", scripts[client])
			return peer.Command{Path: interpreter, Args: []string{script}, Env: []string{"PYTHONDONTWRITEBYTECODE=1"}, Output: e.log(client)}
		}, err
	}},
	{[]string{"kafkajs"}, func(ctx context.Context, e *environment) (func(string) peer.Command, error) {
		script, err := e.node(ctx)
		return func(client string) peer.Command {
			return peer.Command{Path: "node", Args: []string{script}, Env: []string{"KAFKAJS_NO_PARTITIONER_WARNING=1"}, Output: e.log(client)}
		}, err
	}},
	{[]string{"kcat"}, func(ctx context.Context, e *environment) (func(string) peer.Command, error) {
		path, err := e.kcat(ctx)
		return func(string) peer.Command { return peer.Command{Path: path} }, err
	}},
}

// prepare installs what the named clients need, all languages at once: they wait for the network more than for each
// other.
func prepare(ctx context.Context, e *environment, names []string) *commands {
	type outcome struct {
		command func(string) peer.Command
		err     error
	}
	outcomes := make([]outcome, len(languages))
	var installing sync.WaitGroup
	for i, l := range languages {
		if slices.ContainsFunc(l.clients, func(client string) bool { return slices.Contains(names, client) }) {
			installing.Go(func() { outcomes[i].command, outcomes[i].err = l.install(ctx, e) })
		}
	}
	installing.Wait()
	c := &commands{drivers: map[string]peer.Command{}, errs: map[string]error{}}
	for i, l := range languages {
		for _, client := range l.clients {
			switch o := outcomes[i]; {
			case o.err != nil:
				c.errs[client] = o.err
			case o.command != nil:
				c.drivers[client] = o.command(client)
			}
		}
	}
	return c
}

// cast starts the named clients against a broker and reports each: what cannot be had is skipped, what cannot start
// has failed. The caller closes the actors.
func cast(ctx context.Context, r *report, c *commands, addr string, names []string) []*actor {
	var actors []*actor
	for _, name := range names {
		if err := c.errs[name]; errors.Is(err, errMissing) || errors.Is(err, peer.ErrNoJava) {
			r.skip(who{client: name}, "start", err.Error())
			continue
		}
		a := &actor{}
		if name == "kcat" {
			a.client = &kcat{path: c.drivers[name].Path, bootstrap: addr}
		} else {
			a.client = newDriver(c.drivers[name], addr)
		}
		w := who{client: name}
		started := r.check(ctx, w, "start", func(ctx context.Context) (err error) {
			if err := c.errs[name]; err != nil {
				return err
			}
			a.hello, err = a.client.hello(ctx)
			return err
		})
		if started {
			actors = append(actors, a)
		}
	}
	return actors
}

func closeAll(ctx context.Context, actors []*actor) error {
	var errs []error
	for _, a := range actors {
		if err := a.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.hello.Client, err))
		}
	}
	return errors.Join(errs...)
}

// javaOf gives the actor whose driver also runs Kafka's tools, or nil.
func javaOf(actors []*actor) *actor {
	for _, a := range actors {
		if a.hello.Client == "java" {
			return a
		}
	}
	return nil
}
