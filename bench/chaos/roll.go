package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// rollPatience is how long a restart waits to be safe.
const rollPatience = 10 * time.Second

// roll restarts the brokers one after another, as docs/bare-metal.md tells people to: troupe roll says in which order, and waits before each until it is safe. Beside other
// faults it may never be; then the rest are left in peace. When brokers run an older binary (-rolling), they come back with the other one.
func roll(ctx context.Context, n *nemesis, h *hit) (string, error) {
	order, why := n.rollOrder(ctx)
	if order == nil {
		return "nobody: " + why, ctx.Err()
	}
	what := "brokers"
	for _, i := range order {
		if _, err := n.roll(ctx, strconv.Itoa(i+1), "--wait", rollPatience.String()); err != nil {
			return what + fmt.Sprintf(" and not %d: %v", i+1, err), ctx.Err()
		}
		if n.next != "" {
			n.cluster.Brokers[i].command.Path = n.next
		}
		if err := errors.Join(n.restart(ctx, h.hold, i), n.cluster.Brokers[i].Await(ctx)); err != nil {
			return what, err
		}
		what += fmt.Sprint(" ", i+1)
	}
	if _, err := n.roll(ctx, "--wait", rollPatience.String()); err != nil {
		what += ": " + err.Error()
	}
	return what, ctx.Err()
}

// rollOrder is the order in which troupe roll shows the brokers, as indexes, or why none.
func (n *nemesis) rollOrder(ctx context.Context) (order []int, why string) {
	out, err := n.roll(ctx, "-o", "json", "--wait", rollPatience.String())
	if err != nil {
		return nil, err.Error()
	}
	var said struct {
		Brokers []struct {
			Broker int `json:"broker"`
		} `json:"brokers"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, err.Error()
	}
	for _, b := range said.Brokers {
		order = append(order, b.Broker-1)
	}
	return order, ""
}

func (n *nemesis) roll(ctx context.Context, args ...string) ([]byte, error) {
	return n.operate(ctx, append([]string{"roll"}, args...)...)
}

// operate runs the command line, as an operator would.
func (n *nemesis) operate(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, n.tool, append(args, "--bootstrap", strings.Join(n.cluster.Addrs, ","))...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("troupe %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out, err
}
