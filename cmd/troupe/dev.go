package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-broker/troupe/actors/relay"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cmd/troupe/settings"
)

// devNodesMax is how many brokers `troupe dev` starts at most.
const devNodesMax = 9

// devOptions is what the flags of `troupe dev` say.
type devOptions struct {
	nodes   int
	port    int
	dataDir string
	level   string
	pairs   []string
}

// devCluster is what `troupe dev` says when all brokers serve; with -o json it is the first line of its output.
type devCluster struct {
	Bootstrap string      `json:"bootstrap"` // for clients
	Cluster   string      `json:"cluster_id"`
	DataDir   string      `json:"data_dir"`
	Temporary bool        `json:"temporary"` // the data directory is removed at the end
	Brokers   []devMember `json:"brokers"`
}

type devMember struct {
	Broker  int    `json:"broker"`
	Address string `json:"address"`
	Peer    string `json:"peer"`
	Metrics string `json:"metrics"`
	PID     int    `json:"pid"`
	Log     string `json:"log"` // file
}

func newDev(s *session) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of several brokers on this machine, and kill, pause or cut off some",
		Long: "Run several brokers as child processes on 127.0.0.1, to develop and try things against a cluster. When all serve, it prints the addresses\n" +
			"for clients and takes verbs on stdin:\n\n" + devHelp +
			"\nCtrl-C, quit or the end of a script stops all brokers in order; a second Ctrl-C kills them. They do not outlive this process.\n" +
			"Where stdin ends at once (</dev/null), it runs until it gets a signal.\n\n" +
			"Without --data-dir the data is in a temporary directory that is removed at the end; it is kept, for its logs, when a broker did not\n" +
			"start. With it, the cluster is there again next time.\n" +
			"-X gives a setting to all brokers. The first 1, 3 or 5 brokers are the voters; more are observers.",
		Example: "  troupe dev\n  troupe dev --nodes 5 --port 0 --data-dir ./cluster\n  printf 'kill 1\\nwait\\nstatus\\n' | troupe dev",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.dev(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.nodes, "nodes", 3, "number of brokers, 1 to "+fmt.Sprint(devNodesMax))
	flags.IntVar(&o.port, "port", 9092, "port for clients of the first broker, the others follow; 0: any that are free")
	flags.StringVar(&o.dataDir, "data-dir", "", "`DIR` with the data of all brokers (default: a temporary one)")
	flags.StringVar(&o.level, "log-level", "info", "least severe `LEVEL` that the brokers log: debug, info, warn or error")
	flags.StringArrayVarP(&o.pairs, "set", "X", nil, "setting of all brokers, `KEY=VALUE`; may be given again")
	must(cmd.MarkFlagDirname("data-dir"))
	must(cmd.RegisterFlagCompletionFunc("set", completeKeys(config.Broker(), "=", anyKey)))
	return cmd
}

// check refuses what no cluster can be made of, before anything is started.
func (o *devOptions) check(s *session) error {
	if o.nodes < 1 || o.nodes > devNodesMax {
		return usage(fmt.Sprintf("--nodes 1 to %d", devNodesMax), "--nodes %d", o.nodes)
	}
	if o.port < 0 || o.port > 1<<16-devNodesMax {
		return usage("--port 9092, or 0 for any that are free", "--port %d", o.port)
	}
	own := []string{"metrics.listen", "node.id", "broker.id", "listeners", "advertised.listeners", "log.dirs", "log.dir", "join", "bootstrap.expect"}
	from := settings.Sources{Environ: s.environ()} // and that file: the brokers read them too
	from.File, _ = s.env("TROUPE_CONFIG")
	for _, pair := range o.pairs {
		given, err := config.FromFlag(pair)
		if err != nil {
			return err
		}
		if slices.Contains(own, given.Name) || strings.HasPrefix(given.Name, "peer.") {
			return usage("leave it out", "-X %s: troupe dev sets %s itself, differently for each broker", pair, given.Name)
		}
		from.Flags = append(from.Flags, given)
	}
	if _, err := s.logger(o.level); err != nil {
		return err
	}
	if _, err := settings.Load(from); err != nil {
		return configFailure(err)
	}
	return nil
}

// dev starts brokers, obeys verbs and stops the brokers.
func (s *session) dev(ctx context.Context, o *devOptions) (err error) {
	if err := o.check(s); err != nil {
		return err
	}
	runtime.LockOSThread() // children die with the thread that has started them
	defer runtime.UnlockOSThread()
	d := &dev{session: s, options: o, events: make(chan devEvent)}
	if d.binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	temporary, keep := o.dataDir == "", false // keep: the logs say why a broker did not start
	if temporary {
		if o.dataDir, err = os.MkdirTemp("", "troupe-dev-"); err != nil {
			return fail(codeLocalFile, "--data-dir DIR", "make a directory for the data: %w", err)
		}
		defer func() {
			if !keep || err == nil {
				err = errors.Join(err, os.RemoveAll(o.dataDir))
			}
		}()
	} else if err := os.MkdirAll(o.dataDir, 0o750); err != nil {
		return fail(codeLocalFile, "--data-dir DIR", "make a directory for the data: %w", err)
	}
	free, err := relay.Free(3 * o.nodes)
	if err != nil {
		return fail(codeListen, "", "%w", err)
	}
	d.network = newDevNetwork(free[:o.nodes], free[o.nodes:2*o.nodes])
	defer d.network.Close()
	for i, client := range free[2*o.nodes:] {
		if o.port > 0 {
			client = netip.AddrPortFrom(client.Addr(), uint16(o.port+i))
			if err := checkFree(ctx, client.String()); err != nil {
				return err
			}
		}
		b := &devBroker{id: i + 1, client: client.String(), dir: filepath.Join(o.dataDir, fmt.Sprint(i+1)), log: devLog(o.dataDir, i+1), state: devDown}
		d.brokers = append(d.brokers, b)
	}
	defer d.stopAll()
	keep = true
	d.say("starting %d brokers, data and logs in %s", o.nodes, o.dataDir)
	for _, b := range d.brokers {
		if err := d.start(b); err != nil {
			return err
		}
	}
	if err := d.await(ctx, d.allServe); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	keep = false
	if err := d.announce(temporary); err != nil {
		return err
	}
	return d.obey(ctx)
}

// dev is the brokers and the loop that runs them. One goroutine uses it.
type dev struct {
	session *session
	options *devOptions
	binary  string
	network *devNetwork
	brokers []*devBroker
	events  chan devEvent
	failed  bool // a verb did
}

// say writes a line for people, on stderr.
func (d *dev) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.session.err, format+"\n", args...)
}

// voters is how many brokers found the cluster.
func (d *dev) voters() int {
	switch n := d.options.nodes; {
	case n >= 5:
		return 5
	case n >= 3:
		return 3
	}
	return 1
}

// start starts a run of a broker.
func (d *dev) start(b *devBroker) error {
	var join []string
	for i := range d.brokers {
		join = append(join, d.network.front(i+1))
	}
	args := []string{
		"serve", "-o", "json", "--broker-id", fmt.Sprint(b.id), "--listen", b.client, "--data-dir", b.dir, "--log-level", d.options.level,
		"--peer-listen", d.network.back(b.id), "--peer-advertise", d.network.front(b.id),
	}
	switch n := d.voters(); {
	case n > 1:
		args = append(args, "--join", strings.Join(join, ","), "--bootstrap-expect", fmt.Sprint(n))
	case b.id > 1:
		args = append(args, "--join", strings.Join(join, ","))
	}
	args = append(args, "-X", "metrics.listen=127.0.0.1:0")
	for _, pair := range d.options.pairs {
		args = append(args, "-X", pair)
	}
	if err := b.begin(d.binary, args, d.events); err != nil {
		return err
	}
	if err := d.network.Up(b.id, b.cmd.Process.Pid); err != nil {
		b.asked = true
		b.signal(syscall.SIGKILL)
		return fail(codeListen, "somebody has taken the port meanwhile; quit and start again", "the peer address of broker %d: %w", b.id, err)
	}
	return nil
}

// happened takes in what a run tells.
func (d *dev) happened(e devEvent) error {
	b := e.broker
	if e.run != b.cmd {
		return nil
	}
	if e.served != nil {
		b.served = *e.served
		if b.state == devStarting {
			b.state = devServing
		}
		d.say("broker %d serves clients at %s, ready in %d ms", b.id, b.client, e.served.ReadyMs)
		return nil
	}
	b.state, b.cmd = devDown, nil
	d.network.Down(b.id)
	if b.asked {
		return nil
	}
	last := ""
	if lines, err := b.lastLines(1); err == nil {
		last = strings.Join(lines, " ")
	}
	return fail(codeStart, "its log is "+b.log, "broker %d has ended by itself (%v): %s", b.id, e.err, last)
}

// await takes in events until something is so, or ctx ends.
func (d *dev) await(ctx context.Context, so func() bool) error {
	for !so() {
		select {
		case e := <-d.events:
			if err := d.happened(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// allServe tells whether every broker that was started serves.
func (d *dev) allServe() bool {
	return !slices.ContainsFunc(d.brokers, func(b *devBroker) bool { return b.state == devStarting })
}

// announce says that the cluster is there.
func (d *dev) announce(temporary bool) error {
	c := devCluster{Cluster: d.brokers[0].served.Cluster, DataDir: d.options.dataDir, Temporary: temporary}
	var addresses []string
	for _, b := range d.brokers {
		addresses = append(addresses, b.client)
		c.Brokers = append(c.Brokers, devMember{Broker: b.id, Address: b.client, Peer: d.network.front(b.id), Metrics: b.served.Metrics, PID: b.cmd.Process.Pid, Log: b.log})
	}
	c.Bootstrap = strings.Join(addresses, ",")
	s := d.session
	if s.format != formatText {
		if err := s.showLine(c); err != nil {
			return err
		}
		return wrapStdout(s.flush())
	}
	until := ""
	if temporary {
		until = ", removed at the end"
	}
	err := s.show(c, func(w io.Writer) {
		row(w)
		row(w, "cluster", c.Cluster)
		row(w, "bootstrap", c.Bootstrap)
		row(w, "data", c.DataDir+until)
		row(w)
		row(w, "BROKER", "CLIENTS", "PEERS", "METRICS", "PID", "LOG")
		for _, b := range c.Brokers {
			row(w, b.Broker, b.Address, b.Peer, "http://"+b.Metrics+"/metrics", b.PID, b.Log)
		}
		row(w)
		row(w, "try: troupe topic create orders --partitions 6 --replication-factor 3 --bootstrap "+d.brokers[0].client)
		row(w, "verbs: "+strings.Join(devVerbNames(), ", "))
	})
	if err != nil {
		return err
	}
	return wrapStdout(s.flush())
}

// stopAll stops what runs, the last broker first, and waits for it. A second signal ends this process, and the children with it.
func (d *dev) stopAll() {
	running := false
	for _, b := range slices.Backward(d.brokers) {
		running = running || b.cmd != nil
		if err := d.end(b, syscall.SIGTERM); err != nil {
			d.say("%v", err)
		}
	}
	if running {
		d.say("all brokers have stopped")
	}
}

// end has a broker end by a signal and waits for it.
func (d *dev) end(b *devBroker, by syscall.Signal) error {
	if b.cmd == nil {
		return nil
	}
	run, gone := b.cmd, b.gone
	b.asked = true
	b.signal(by)
	b.signal(syscall.SIGCONT) // one that is paused hears nothing else
	late := time.AfterFunc(stopMax+time.Second, func() { _ = run.Process.Kill() })
	defer late.Stop()
	if err := d.await(context.Background(), func() bool { return b.cmd != run }); err != nil {
		return err
	}
	<-gone
	return nil
}
