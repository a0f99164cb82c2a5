package coord

// HeldBytes is about how many bytes a command of a member that may have to wait for others keeps beside itself: what Join and Sync bring. The memory of their
// requests is given back long before they are answered; that of all others bounds their commands, which count as nothing here.
func HeldBytes(c Command) int {
	n := 0
	switch c := c.(type) {
	case *Join:
		n = len(c.Group) + len(c.Member) + len(c.Instance) + len(c.NewMember) + len(c.Client.ID) + len(c.Client.Host) + len(c.ProtocolType) + len(c.Reason)
		for i := range c.Protocols {
			n += len(c.Protocols[i].Name) + len(c.Protocols[i].Metadata) + listedBytes
		}
	case *Sync:
		n = len(c.Group) + len(c.Member) + len(c.Instance) + len(c.ProtocolType) + len(c.Protocol)
		for i := range c.Assignments {
			n += len(c.Assignments[i].Member) + len(c.Assignments[i].Assignment) + listedBytes
		}
	case *Heartbeat, *Leave, *ConsumerHeartbeat, *Commit, *FetchOffsets, *DeleteOffsets, *Describe, *ConsumerDescribe, *List, *Delete, *Inspect,
		*TopicsChanged, *TopicsDeleted, *Jumped, *Configure:
	}
	return n
}

// listedBytes is what an element of a list takes, a string and a slice.
const listedBytes = 40
