package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-broker/troupe/bench/program"
)

// sections are the parts of the suite by name, in their order.
var sections = []string{"clients", "topics", "tools", "groups", "restart", "cluster", "full"}

// options are the command line.
type options struct {
	target   string
	full     bool
	clients  []string
	sections []string
	out      string
	keep     bool
}

func parseOptions(args []string) (options, error) {
	flags := flag.NewFlagSet("interop", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.target, "target", "troupe", "broker under test: troupe, built from this tree, or kafka, the oracle")
	suite := flags.String("suite", "smoke", "smoke, or all for the whole matrix")
	clients := flags.String("clients", strings.Join(clientNames, ","), "which clients take part")
	parts := flags.String("sections", strings.Join(sections, ","), "which parts run")
	flags.StringVar(&o.out, "out", "", "a file that receives the report too")
	flags.BoolVar(&o.keep, "keep", false, "keep logs and data even when everything passed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch *suite {
	case "smoke":
	case "all":
		o.full = true
	default:
		return o, fmt.Errorf("no suite %q: smoke or all", *suite)
	}
	var err error
	if o.clients, err = program.Choose("client", *clients, clientNames); err != nil {
		return o, err
	}
	o.sections, err = program.Choose("section", *parts, sections)
	return o, err
}

func main() {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !passed {
		stop()
		os.Exit(1)
	}
}

// run does the whole suite and says whether everything passed.
func run(ctx context.Context, o options) (passed bool, err error) {
	e, err := newEnvironment()
	if err != nil {
		return false, err
	}
	out := io.Writer(os.Stdout)
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = io.MultiWriter(out, file)
	}
	defer func() {
		if passed && !o.keep {
			err = errors.Join(err, os.RemoveAll(e.run))
		} else {
			fmt.Fprintf(os.Stderr, "logs and data are kept in %s\n", e.run)
		}
	}()

	r := newReport(out)
	r.printf("interop, %s, %s, %d processors, %s\n", time.Now().UTC().Format(time.DateTime), runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	r.section("prepare")
	began := time.Now()
	s := &suite{report: r, env: e, full: o.full, commands: prepare(ctx, e, o.clients)}
	r.printf("clients installed in %d ms\n", time.Since(began).Milliseconds())
	began = time.Now()
	if s.target, err = startTarget(ctx, e, o.target, "broker", groupSettings); err != nil {
		return false, err
	}
	r.printf("%s %s serves at %s after %d ms\n", s.target.name, s.target.version, s.target.addr, time.Since(began).Milliseconds())
	s.actors = cast(ctx, r, s.commands, s.target.addr, o.clients)
	for _, section := range o.sections {
		switch section {
		case "clients":
			s.clients(ctx)
		case "topics":
			s.topics(ctx)
		case "tools":
			s.tools(ctx)
		case "groups":
			s.groups(ctx)
		case "restart":
			s.restart(ctx)
		case "cluster":
			err = errors.Join(err, s.cluster(ctx, o.clients))
		case "full":
			err = errors.Join(err, s.fullDepth(ctx, o.clients))
		}
	}
	// The context may have ended by an interrupt; the children are ended in order all the same.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = errors.Join(err, s.target.Stop(end), ctx.Err())
	if java := javaOf(s.actors); java != nil && err == nil {
		r.section("after an orderly stop")
		(&toolbox{suite: s, driver: java.client.(*driver)}).stopped(ctx)
	}
	err = errors.Join(err, closeAll(end, s.actors))
	return r.summary() && err == nil, err
}
