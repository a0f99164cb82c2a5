package peer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NewTroupeCluster describes three brokers that found a cluster together; they are not started.
func NewTroupeCluster(binary string, o ClusterOptions) (*Cluster, error) {
	c := &Cluster{}
	var peers, monitors []string
	for i, h := range o.hostsOr() {
		ports, err := h.ports(3)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, &Node{ID: int32(i + 1), Addr: h.at(ports[0]), Host: h})
		peers, monitors = append(peers, h.at(ports[1])), append(monitors, h.at(ports[2]))
	}
	for i, n := range c.Nodes {
		dir := filepath.Join(o.Dir, fmt.Sprint("broker-", n.ID))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		args := []string{
			"serve", "--broker-id", fmt.Sprint(n.ID), "--listen", n.Addr, "--peer-listen", peers[i], "--join", strings.Join(peers, ","),
			"--bootstrap-expect", fmt.Sprint(clusterSize), "--data-dir", filepath.Join(dir, "data"), "-X", "metrics.listen=" + monitors[i],
		}
		if n.Host.Namespace != "" {
			args = append(args, "--insecure") // nobody else is on that network
		}
		for _, key := range slices.Sorted(maps.Keys(o.Settings)) {
			args = append(args, "-X", key+"="+o.Settings[key])
		}
		n.command = Command{Path: binary, Args: args, Output: filepath.Join(dir, "broker.log"), Namespace: n.Host.Namespace}
	}
	return c, nil
}
