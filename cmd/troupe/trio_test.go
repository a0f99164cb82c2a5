package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// trio is a cluster of three processes, each on addresses of its own that it keeps over its lives.
type trio struct {
	t       *testing.T
	dirs    [3]string
	clients [3]string
	peers   [3]string
	alive   [3]*process
	out     [3]*bufio.Reader
}

// freeAddress finds an address whose number is free for TCP and UDP.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Close() }()
	return l.Addr().String()
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	c := &trio{t: t}
	for i := range c.dirs {
		c.dirs[i], c.clients[i], c.peers[i] = filepath.Join(t.TempDir(), "data"), freeAddress(t), freeAddress(t)
	}
	return c
}

// launch starts a broker, or starts it again.
func (c *trio) launch(i int, more ...string) {
	c.t.Helper()
	args := append([]string{
		"--broker-id", fmt.Sprint(i + 1), "--listen", c.clients[i], "--peer-listen", c.peers[i], "--join", strings.Join(c.peers[:], ","), "--bootstrap-expect", "3",
		"--data-dir", c.dirs[i], "-X", "metrics.listen=127.0.0.1:0",
	}, more...)
	c.alive[i], c.out[i] = launch(c.t, args...)
}

// ready waits until a broker says that it serves.
func (c *trio) ready(i int) {
	c.t.Helper()
	line, err := c.out[i].ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("broker %d said nothing: %v\n%s", i+1, err, c.alive[i].log(c.t))
	}
	if err := json.Unmarshal(line, &c.alive[i].served); err != nil {
		c.t.Fatalf("broker %d said %q: %v", i+1, line, err)
	}
}

// client asks one broker.
func (c *trio) client(i int) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.clients[i]))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// controller is the broker of the controller, as broker i knows.
func (c *trio) controller(i int) int {
	c.t.Helper()
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	resp, err := c.client(i).SeedBrokers()[0].Request(bounded(c.t, 30*time.Second), req)
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.DescribeQuorumResponse).ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("broker %d describes no quorum: %v", i+1, err)
	}
	return int(resp.(*kmsg.DescribeQuorumResponse).Topics[0].Partitions[0].LeaderID) - 1
}

// launchAll starts all brokers and waits until they serve.
func (c *trio) launchAll(more ...string) {
	c.t.Helper()
	for i := range c.alive {
		c.launch(i, more...)
	}
	for i := range c.alive {
		c.ready(i)
	}
}

func (c *trio) create(i int, name string) {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 2, 2
	req.Topics = append(req.Topics, topic)
	resp, err := c.client(i).SeedBrokers()[0].Request(bounded(c.t, 30*time.Second), req)
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("broker %d makes no topic %s: %v", i+1, name, err)
	}
}

// topics are the names that broker i tells of.
func (c *trio) topics(i int) string {
	c.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	resp, err := c.client(i).SeedBrokers()[0].Request(bounded(c.t, 30*time.Second), req)
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, topic := range resp.(*kmsg.MetadataResponse).Topics {
		names = append(names, *topic.Topic)
	}
	return strings.Join(names, " ")
}

func TestACrashedControllerIsFollowedAndComesBack(t *testing.T) {
	c := newTrio(t)
	c.launchAll()
	for i, p := range c.alive {
		if p.Cluster == "" || p.Cluster != c.alive[0].Cluster || int(p.Broker) != i+1 || p.Peer != c.peers[i] {
			t.Fatalf("%+v", p.served)
		}
	}
	var status clusterStatus
	if err := json.Unmarshal([]byte(c.alive[1].cli(t, "", "cluster", "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	if status.Cluster != c.alive[0].Cluster || len(status.Brokers) != 3 || int(status.Controller) != c.controller(1)+1 || status.Brokers[status.Controller-1].Role != "controller" ||
		status.Brokers[2].State != "serving" || !slices.ContainsFunc(status.Features, func(f featureRow) bool { return f.Name == "troupe.peer.version" && f.Level >= 2 && f.Level == f.Newest }) {
		t.Errorf("%+v", status)
	}
	// Each in turn is killed, the controller first; what is made meanwhile is there when it comes back.
	dead := c.controller(0)
	for n := range c.alive {
		c.alive[dead].kill(t)
		c.create((dead+1)%3, fmt.Sprint("without-", dead+1))
		if now := c.controller((dead + 2) % 3); now == dead {
			t.Fatalf("broker %d is dead and the controller", dead+1)
		}
		c.launch(dead)
		c.ready(dead)
		if got, want := strings.Count(c.topics(dead), "without-"), n+1; got != want {
			t.Errorf("broker %d came back and tells of %d topics, want %d", dead+1, got, want)
		}
		dead = (dead + 1) % 3
	}
	// All at once.
	for i := range c.alive {
		c.alive[i].kill(t)
	}
	for i := range c.alive {
		c.launch(i)
	}
	for i := range c.alive {
		c.ready(i)
		if got := strings.Count(c.topics(i), "without-"); got != 3 {
			t.Errorf("broker %d came back and tells of %d topics, want 3", i+1, got)
		}
	}
	for i := range c.alive {
		c.alive[i].stop(t)
	}
}

func TestFoundersThatAreKilledInTheMiddleFoundOneCluster(t *testing.T) {
	c := newTrio(t)
	for i := range c.alive {
		c.launch(i)
	}
	c.ready(0) // the others may be anywhere
	c.alive[1].kill(t)
	c.alive[2].kill(t)
	c.launch(1)
	c.launch(2)
	c.ready(1)
	c.ready(2)
	if a, b := c.alive[0].Cluster, c.alive[1].Cluster; a != b || b != c.alive[2].Cluster {
		t.Errorf("clusters %q, %q, %q", a, b, c.alive[2].Cluster)
	}
}

func TestWhoJoinsWaitsForACluster(t *testing.T) {
	p, out := launch(t, "--broker-id", "4", "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--join", freeAddress(t), "--data-dir", filepath.Join(t.TempDir(), "data"), "-X", "metrics.listen=")
	for !strings.Contains(p.log(t), "it waits for one to join") || !strings.Contains(p.log(t), "TRP-4206") {
		select {
		case <-p.exited:
			t.Fatal("it exited")
		default:
		}
	}
	p.stop(t)
	if rest, err := out.ReadString('\n'); err == nil {
		t.Errorf("it said %q", rest)
	}
}
