package peer

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
)

// NewKafkaCluster formats the directories of three nodes, each broker and controller at once; they are not started. They differ from what the release's own
// server.properties gives in nothing but the profile and what Settings say.
func NewKafkaCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	if o.Profile.Name == "" {
		o.Profile = Stock
	}
	classPath, err := ClassPath(ctx, o.CacheDir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	var controllers, initial []string
	for i, h := range o.hostsOr() {
		ports, err := h.ports(2)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, &Node{ID: int32(i + 1), Addr: h.at(ports[0]), Host: h})
		controllers = append(controllers, h.at(ports[1]))
		initial = append(initial, fmt.Sprintf("%d@%s:%s", i+1, h.at(ports[1]), randomID()))
	}
	id := randomID()
	for i, n := range c.Nodes {
		dir := filepath.Join(o.Dir, fmt.Sprint("node-", n.ID))
		properties := nodeProperties(n.ID, n.Addr, controllers[i], filepath.Join(dir, "data"))
		properties["controller.quorum.bootstrap.servers"] = strings.Join(controllers, ",")
		maps.Copy(properties, o.Profile.properties())
		maps.Copy(properties, o.Settings)
		install, err := newInstall(classPath, dir, properties)
		if err != nil {
			return nil, err
		}
		if err := install.format(ctx, "--cluster-id", id, "--initial-controllers", strings.Join(initial, ",")); err != nil {
			return nil, err
		}
		n.command = install.command(o.Profile)
		n.command.Namespace = n.Host.Namespace
	}
	return c, nil
}
