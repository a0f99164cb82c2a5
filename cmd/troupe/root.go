package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const defaultBootstrap = "127.0.0.1:9092"

// newRoot builds the command tree of a session.
func newRoot(s *session) *cobra.Command {
	root := &cobra.Command{
		Use:   "troupe",
		Short: "An event broker that speaks the Kafka protocol, and its command line",
		Long: "Troupe is an event broker that speaks the Kafka protocol, and its command line, in one binary.\n\n" +
			"Start a broker:          troupe serve\n" +
			"Write and read:          echo hello | troupe produce greetings && troupe consume greetings\n\n" +
			"Exit codes: 0 done, 1 it failed, 2 the command line or the configuration is wrong,\n" +
			"3 the broker found a bug in itself, 11 a restart is not safe now, 130 a second signal ended it at once.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(formats, s.format) {
				given := s.format
				s.format = formatText
				return usage("-o text, -o json or -o yaml", "there is no output form %q", given)
			}
			return nil
		},
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetIn(s.in)
	root.SetFlagErrorFunc(flagsError)
	bootstrap := defaultBootstrap
	if v, ok := s.env("TROUPE_BOOTSTRAP"); ok && v != "" {
		bootstrap = v
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&s.format, "output", "o", formatText, "form of the output: text, json or yaml")
	flags.StringVar(&s.bootstrap, "bootstrap", bootstrap, "brokers to ask first, HOST:PORT, separated by commas (env TROUPE_BOOTSTRAP)")
	flags.BoolVar(&s.progress, "progress", false, "show progress even when stderr is not a terminal")
	must(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))

	root.AddCommand(newServe(s), newTopic(s), newPartition(s), newProduce(s), newConsume(s), newGroup(s), newCluster(s), newBroker(s), newRoll(s), newDev(s), newConfig(s), newDump(s), newVersion(s))
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"}) // --help says the same
	root.InitDefaultCompletionCmd()
	for _, c := range everyCommand(root) {
		if c.Args == nil && c.Runnable() {
			c.Args = noArgs
		}
		if c.Args != nil {
			c.Args = countedArgs(c.Args)
		}
		if c.HasSubCommands() && !c.Runnable() {
			c.Args, c.RunE = cobra.ArbitraryArgs, unknownSubcommand
		}
	}
	return root
}

var formats = []string{formatText, formatJSON, formatYAML}

// everyCommand lists a command and all below it.
func everyCommand(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, everyCommand(sub)...)
	}
	return all
}

// countedArgs gives the errors of cobra's argument checks our form.
func countedArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("usage: "+cmd.UseLine(), "%w", err)
		}
		return nil
	}
}

// noArgs is the check of commands that take flags only. The library's own takes a surplus word for a command.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument; %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}

// unknownSubcommand runs for a command that only has commands below it.
func unknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	names := make([]string, 0, len(cmd.Commands()))
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return usage("one of: "+strings.Join(names, ", "), "%s has no command %q", cmd.CommandPath(), args[0])
}

// must is for calls that fail only when the program itself is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// timeoutFlag is the flag of every command that asks a broker.
func timeoutFlag(cmd *cobra.Command, d *time.Duration) {
	cmd.Flags().DurationVar(d, "timeout", 10*time.Second, "how long to wait for the broker's answers")
}
