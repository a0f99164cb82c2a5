package coord

import "github.com/troupe-broker/troupe/wire/ident"

// Topics is a view of the cluster's topics that does not change. The shell makes one of each metadata image.
type Topics interface {
	// ByName finds a topic by its name.
	ByName(name string) (Topic, bool)
	// ByID finds a topic by its id.
	ByID(id ident.TopicID) (Topic, bool)
	// Each visits all topics in the order of their names, internal ones too, until visit returns false.
	Each(visit func(Topic) bool)
}

// Topic is what a coordinator knows of a topic.
type Topic struct {
	Name       string
	ID         ident.TopicID
	Partitions int32
	// Racks lists, for each partition, the racks of its replicas, without doubles and in order. nil: no replica has a rack.
	Racks [][]string
}
