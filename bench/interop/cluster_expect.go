package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// leaderElection is the class of kafka-leader-election.
const leaderElection = "LeaderElectionCommand"

// partitionLine is a line of kafka-topics --describe about one partition.
var partitionLine = regexp.MustCompile(`^\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S*)\tIsr: (\S*)(?:\tAdding Replicas: \S*)?(?:\tRemoving Replicas: \S*)?\tElr: (\S*)`)

// partitions wants exactly these partitions in the output of kafka-topics, each as "topic-0 leader 1 replicas 1,2,3 isr 1,2 elr 3", in any order; elr is left
// out where it is empty, the ISR is told by rising ids, and is none when it is empty.
func partitions(want ...string) expect {
	return expect{holds: func(r toolResult) error {
		var got []string
		for _, line := range linesOf(r.Out) {
			if strings.HasPrefix(line, "Topic: ") {
				continue // the topic's own line
			}
			found := partitionLine.FindStringSubmatch(line + "\t")
			if found == nil {
				return fmt.Errorf("line %q is no partition", line)
			}
			text := fmt.Sprintf("%s-%s leader %s replicas %s isr %s", found[1], found[2], found[3], found[4], rising(found[5]))
			if found[6] != "" {
				text += " elr " + rising(found[6])
			}
			got = append(got, text)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			return fmt.Errorf("the partitions are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	}}
}

// rising sorts a list of one-digit ids.
func rising(ids string) string {
	if ids == "" {
		return "none"
	}
	list := strings.Split(ids, ",")
	slices.Sort(list)
	return strings.Join(list, ",")
}

// endpoints wants exactly these brokers of the section in the table of kafka-cluster, each at its own address.
func (st *stage) endpoints(ids ...int) expect {
	return expect{holds: func(r toolResult) error {
		var got, want []string
		for _, line := range linesOf(r.Out) {
			if f := strings.Fields(line); len(f) > 3 && f[0] != "ID" {
				got = append(got, f[0]+" "+f[1]+":"+f[2])
			}
		}
		for _, id := range ids {
			want = append(want, strconv.Itoa(id)+" "+st.trio.node(id).addr)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the endpoints are %q, want %q", got, want)
		}
		return nil
	}}
}

// voterLine is a line of kafka-metadata-quorum describe --replication about a voter. Of one that is dead since before the last election all is -1.
var voterLine = regexp.MustCompile(`^(\d+)\s+([A-Za-z0-9_-]{22})\s+(-?\d+)\s+(\d+)\s+(\d{13}|-1)\s+(\d{13}|-1)\s+(Leader|Follower)`)

// voters wants exactly these voters, one of them the leader, which has no lag, in directories of their own.
func voters(ids ...int) expect {
	return expect{holds: func(r toolResult) error {
		var got []int
		directories, leaders := map[string]bool{}, 0
		for _, line := range linesOf(r.Out) {
			found := voterLine.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			id, err := strconv.Atoi(found[1])
			if err != nil {
				return err
			}
			got = append(got, id)
			directories[found[2]] = true
			if found[7] == "Leader" {
				leaders++
				if found[4] != "0" || found[5] == "-1" || found[6] == "-1" {
					return fmt.Errorf("the leader does not know where it is: %q", line)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, ids) || len(directories) != len(ids) || leaders != 1 {
			return fmt.Errorf("voters %v in %d directories with %d leaders, want %v and one", got, len(directories), leaders, ids)
		}
		return nil
	}}
}

// apiVersionsOfAll wants each broker's APIs, as apiVersions does of one.
func (st *stage) apiVersionsOfAll() expect {
	return expect{holds: func(r toolResult) error {
		seen := 0
		for _, part := range strings.SplitAfter(r.Out, "\n)") {
			if strings.TrimSpace(part) == "" {
				continue
			}
			part = strings.TrimLeft(part, "\n")
			i := slices.IndexFunc(st.trio.nodes, func(n *node) bool { return strings.HasPrefix(part, n.addr+" (id: "+strconv.Itoa(n.id)+" ") })
			if i < 0 {
				return fmt.Errorf("no broker of the section: %.100q", part)
			}
			one := &toolbox{suite: &suite{target: &target{name: st.target.name, addr: st.trio.nodes[i].addr}}}
			if err := one.apiVersions(strconv.Itoa(st.trio.nodes[i].id)).holds(toolResult{Out: part}); err != nil {
				return fmt.Errorf("broker %d: %w", st.trio.nodes[i].id, err)
			}
			seen++
		}
		if seen != len(st.trio.nodes) {
			return fmt.Errorf("%d brokers, want %d", seen, len(st.trio.nodes))
		}
		return nil
	}}
}
