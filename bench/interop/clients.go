package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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

// commands installs what the named clients need and gives how to start each. A client that cannot be had here has an
// error instead.
type commands struct {
	drivers map[string]peer.Command
	kcat    string
	errs    map[string]error
}

func prepare(ctx context.Context, e *environment, names []string) *commands {
	c := &commands{drivers: map[string]peer.Command{}, errs: map[string]error{}}
	fail := func(err error, clients ...string) {
		for _, name := range clients {
			c.errs[name] = err
		}
	}
	wanted := func(clients ...string) bool {
		return slices.ContainsFunc(clients, func(name string) bool { return slices.Contains(names, name) })
	}
	if wanted("java") {
		if command, err := e.java(ctx); err != nil {
			fail(err, "java")
		} else {
			c.drivers["java"] = command
		}
	}
	if goClients := []string{"franz-go", "sarama", "sarama-max", "kafka-go"}; wanted(goClients...) {
		binary, err := e.golang(ctx)
		if err != nil {
			fail(err, goClients...)
		} else {
			for _, name := range goClients {
				c.drivers[name] = peer.Command{Path: binary, Args: []string{"-client", name}, Output: e.log(name)}
			}
		}
	}
	if pythonClients := map[string]string{"confluent": "confluent.py", "aiokafka": "aio.py", "kafka-python": "kpython.py"}; wanted("confluent", "aiokafka", "kafka-python") {
		interpreter, err := e.python(ctx)
		for name, script := range pythonClients {
			if err != nil {
				fail(err, name)
				continue
			}
			c.drivers[name] = peer.Command{
				Path: interpreter, Args: []string{filepath.Join(e.drivers, "python", script)}, Env: []string{"PYTHONDONTWRITEBYTECODE=1"}, Output: e.log(name),
			}
		}
	}
	if wanted("kafkajs") {
		if script, err := e.node(ctx); err != nil {
			fail(err, "kafkajs")
		} else {
			c.drivers["kafkajs"] = peer.Command{
				Path: "node", Args: []string{script}, Env: []string{"KAFKAJS_NO_PARTITIONER_WARNING=1"}, Output: e.log("kafkajs"),
			}
		}
	}
	if wanted("kcat") {
		path, err := e.kcat(ctx)
		if err != nil {
			fail(err, "kcat")
		}
		c.kcat = path
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
			a.client = &kcat{path: c.kcat, bootstrap: addr}
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
