package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
	"github.com/troupe-broker/troupe/bench/program"
)

func main() {
	program.Main("chaos", func(args []string) (options, error) { return parseOptions(args, os.Stderr) },
		func(ctx context.Context, o options) error { return o.run(ctx, os.Stdout) })
}

// printer prints, and keeps the first error.
type printer struct {
	io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p, format, args...); p.err == nil {
		p.err = err
	}
}

// errFailed says that a run found something; the report has told what.
var errFailed = errors.New("not all runs passed")

func (o options) run(ctx context.Context, stdout io.Writer) (err error) {
	switch {
	case o.again != "":
		return o.checkAgain(&printer{Writer: stdout})
	case o.show:
		return o.showSchedules(&printer{Writer: stdout})
	}
	out := &printer{Writer: stdout}
	defer func() { err = errors.Join(err, out.err) }()
	if o.out != "" {
		f, err := os.OpenFile(o.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out.Writer = io.MultiWriter(stdout, f)
	}
	lib, err := o.library(ctx, out)
	if err != nil {
		return err
	}
	if lib == nil {
		o.clients = slices.DeleteFunc(o.clients, func(name string) bool { return name == librdkafkaName })
	}
	var left []string
	o.nemeses, left = o.fit()
	if len(o.nemeses) == 0 {
		return fmt.Errorf("no fault is left: %s", strings.Join(left, ", "))
	}
	base := o.dir
	if base == "" {
		base, err = os.MkdirTemp("", "troupe-chaos-")
	} else {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		return err
	}
	if o.binary == "" {
		if o.binary, err = Build(ctx, base); err != nil {
			return err
		}
	}
	if o.wantsProving() {
		if o.proving, err = BuildProving(ctx, base); err != nil {
			return err
		}
	}
	out.printf("%s, %d brokers, two topics with %d partitions each, %d records/s by %s, %v a run; a cluster of its own for each run\nfaults: %s\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), o.brokers, o.partitions, o.rate, strings.Join(o.clients, " and "), o.length, strings.Join(o.nemeses, ", "))
	if len(left) > 0 {
		out.printf("left out: %s\n\n", strings.Join(left, ", "))
	}
	switch {
	case o.rolling:
		out.printf("%s founds each cluster, and all brokers are upgraded under load\n\n", filepath.Base(o.another))
	case o.another != "":
		out.printf("%s founds each cluster, and broker %d keeps it when the others are upgraded\n\n", filepath.Base(o.another), o.brokers)
	}
	out.printf("%s\n", reportHead())
	bad, total := 0, result{}
	for i := range uint64(o.runs) {
		r := o.once(ctx, lib, o.seed+i, filepath.Join(base, fmt.Sprint("seed-", o.seed+i)))
		out.printf("%s", r.lines())
		total.add(r)
		if r.failed() {
			bad++
			out.printf("%s", r.story())
		} else if !o.keep {
			if err := os.RemoveAll(r.dir); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	out.printf("\n%d runs, %d failed: %s\n", o.runs, bad, total.sum())
	if bad > 0 {
		out.printf("data, logs and histories of what failed are kept in %s\n", base)
		return errFailed
	}
	if !o.keep && o.dir == "" {
		return os.RemoveAll(base)
	}
	return nil
}

// library makes librdkafka ready. One that cannot be had is left out, with words, unless somebody insists: who named it, or CI.
func (o options) library(ctx context.Context, out *printer) (*librdkafka, error) {
	if !slices.Contains(o.clients, librdkafkaName) {
		return nil, nil
	}
	lib, err := newLibrdkafka(ctx)
	if errors.Is(err, errMissing) && !o.insist && os.Getenv("CI") != "true" && slices.Contains(o.clients, franzGo) {
		out.printf("librdkafka takes no part: %v\n", err)
		return nil, nil
	}
	return lib, err
}

func (o options) checkAgain(out *printer) error {
	events, err := check.Read(o.again)
	if err != nil {
		return err
	}
	violations := check.All(events)
	r := result{dir: filepath.Dir(o.again), violations: violations}
	r.measure(events, 0, 1<<62)
	out.printf("%d events: %s\n", len(events), r.sum())
	if o.pages != "" {
		if err := r.writePage(pageName(o.pages, 0, time.Now()), events); err != nil {
			return err
		}
	}
	if len(violations) == 0 {
		return out.err
	}
	out.printf("%s", r.story())
	return errFailed
}

func (o options) showSchedules(out *printer) error {
	o.nemeses, _ = o.fit() // the report of a run says why
	for i := range uint64(o.runs) {
		steps, with := o.plan(o.seed + i)
		out.printf("seed %d%s\n", o.seed+i, with.words())
		for _, s := range steps {
			out.printf("  %6.1f s  %v\n", s.at.Seconds(), s)
		}
	}
	return out.err
}
