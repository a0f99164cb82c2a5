package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// bigConfig is a text that a topic may have as a value, of 30 KB, near the most that a string may have.
func bigConfig(round int) string {
	return fmt.Sprint(round, ":1,") + strings.Repeat("0:1,", 7_500) + "0:1"
}

// bigNames are topics with a big value each.
func bigNames(from, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("big-%03d", from+i))
	}
	return names
}

func (r *running) alterBig(round int, names []string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	for _, name := range names {
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, name
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = "leader.replication.throttled.replicas", new(bigConfig(round))
		res.Configs = append(res.Configs, c)
		req.Resources = append(req.Resources, res)
	}
	var err error
	for _, res := range ask[*kmsg.IncrementalAlterConfigsResponse](r, req).Resources {
		err = errors.Join(err, kerr.ErrorForCode(res.ErrorCode))
	}
	return err
}

func (r *running) bigValue(name string) string {
	req := kmsg.NewPtrDescribeConfigsRequest()
	res := kmsg.NewDescribeConfigsRequestResource()
	res.ResourceType, res.ResourceName, res.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{"leader.replication.throttled.replicas"}
	req.Resources = append(req.Resources, res)
	for _, c := range ask[*kmsg.DescribeConfigsResponse](r, req).Resources[0].Configs {
		if c.Value != nil {
			return *c.Value
		}
	}
	return ""
}

// Metadata that no frame between brokers can hold, 3 MB in a log that was compacted: a voter that was down meanwhile gets it as a letter in pieces, a new
// observer by one pull after the other. The log behind a snapshot is kept for 4 MiB, so that a few rounds of changes are needed to be rid of it.
func TestLargeMetadataReachesWhoeverComesLater(t *testing.T) {
	t.Parallel()
	const topics, rounds = 100, 3
	var logs [3]bytes.Buffer
	all, dirs := make([]*running, 3), make([]string, 3)
	begin := func(i int, pairs ...string) {
		logs[i] = bytes.Buffer{}
		all[i] = clusteredWith(t, zerolog.New(zerolog.SyncWriter(&logs[i])).Level(zerolog.InfoLevel), i+1, dirs[i], append(pairs, "metadata.log.max.record.bytes.between.snapshots=1000000")...)
	}
	for i := range all {
		dirs[i] = t.TempDir()
		if i == 0 {
			begin(i)
		} else {
			begin(i, "join="+all[0].PeerAddress())
		}
	}
	for _, b := range all {
		b.serves()
	}
	leader := int(all[0].quorum().LeaderID - 1)
	late := (leader + 1) % 3
	all[late].stop()
	controller := all[leader]
	for _, name := range bigNames(0, topics) {
		if err := controller.create(name, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		for from := 0; from < topics; from += 10 { // a request may have half a MiB
			if err := controller.alterBig(round, bigNames(from, 10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin(late, "join="+controller.PeerAddress())
	fourth := clustered(t, 4, t.TempDir(), "bootstrap.expect=-1", "join="+controller.PeerAddress())
	for _, b := range []*running{all[late], fourth} {
		b.serves()
		for _, name := range []string{"big-000", "big-099"} {
			if got := b.bigValue(name); got != bigConfig(rounds-1) {
				t.Errorf("the value of %s has %d bytes there", name, len(got))
			}
		}
	}
	all[late].stop()
	if told := logs[late].String(); !strings.Contains(told, "a snapshot has taken the place") {
		t.Errorf("the voter that came back took no snapshot:\n%s", told)
	}
}
