// Package program is what the programs of bench share: how they begin, how they end, and how they refuse what they are told.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Main is the main function of a program. parse reads its flags: flag.ErrHelp ends it with 0, another error with 2. An error of run ends it with 1; SIGINT and
// SIGTERM end run's context.
func Main[Options any](name string, parse func([]string) (Options, error), run func(context.Context, Options) error) {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Choose splits a list of names at its commas. It returns those that are in all, in the order of all, and an error for a name that is not.
func Choose(what, list string, all []string) ([]string, error) {
	named := strings.Split(list, ",")
	for _, name := range named {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no %s %q: there are %s", what, name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(named, name) }), nil
}
