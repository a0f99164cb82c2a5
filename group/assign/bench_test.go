package assign_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/assign"
)

// BenchmarkAssign: a group from nothing, at rest, and when a member leaves.
func BenchmarkAssign(b *testing.B) {
	for _, name := range assign.Names() {
		assignor, _ := assign.Lookup(name)
		for _, subscriptions := range []string{"all", "some"} {
			for _, size := range []struct{ members, topics, partitions int }{{1_000, 10, 1_000}, {1_000, 1_000, 10}, {1_000, 10_000, 1}, {10, 10_000, 1}} {
				c := make(cluster)
				for t := range size.topics {
					c[topicID(t)] = int32(size.partitions)
				}
				ids := c.ids()
				members := make([]assign.Member, size.members)
				for i := range members {
					members[i] = assign.Member{ID: fmt.Sprintf("m%04d", i), Topics: ids}
					if subscriptions == "some" { // a half of the topics, another one for each member
						members[i].Topics = nil
						for t, id := range ids {
							if (t*7+i*13)%size.topics < (size.topics+1)/2 {
								members[i].Topics = append(members[i].Topics, id)
							}
						}
					}
				}
				where := fmt.Sprintf("assignor=%s/subscriptions=%s/members=%d/topics=%d/partitions=%d", name, subscriptions, size.members, size.topics, size.topics*size.partitions)
				settled := append([]assign.Member(nil), members...)
				adopt(settled, assignor(settled, c.byID))
				for _, run := range []struct {
					name    string
					members []assign.Member
				}{{"new", members}, {"rest", settled}, {"leave", settled[1:]}} {
					b.Run(where+"/"+run.name, func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							assignor(run.members, c.byID)
						}
					})
				}
			}
		}
	}
}
