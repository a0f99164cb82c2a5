package broker

import (
	"errors"
	"slices"
	"strconv"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

// groupsWorld is what coordinators know of everything beside their log. It is immutable: Root makes another one when something of it changes. Equal
// pointers inside mean that nothing changed.
type groupsWorld struct {
	values *config.GroupValues
	config *coord.Config
	topics *topicsView
}

// topicsView shows the topics of an image to coordinators.
type topicsView struct {
	image *cluster.Image
	racks bool // some broker has one
}

func viewTopics(image *cluster.Image) *topicsView {
	v := &topicsView{image: image}
	for b := range image.Brokers() {
		v.racks = v.racks || b.Rack != ""
	}
	return v
}

// ByName implements coord.Topics.
func (v *topicsView) ByName(name string) (coord.Topic, bool) {
	t, ok := v.image.Topic(name)
	if !ok {
		return coord.Topic{}, false
	}
	return v.show(t), true
}

// ByID implements coord.Topics.
func (v *topicsView) ByID(id ident.TopicID) (coord.Topic, bool) {
	t, ok := v.image.TopicByID(id)
	if !ok {
		return coord.Topic{}, false
	}
	return v.show(t), true
}

// Each implements coord.Topics.
func (v *topicsView) Each(visit func(coord.Topic) bool) {
	for t := range v.image.Topics() {
		if !visit(v.show(t)) {
			return
		}
	}
}

func (v *topicsView) show(t *cluster.Topic) coord.Topic {
	out := coord.Topic{Name: t.Name, ID: t.ID, Partitions: int32(len(t.Partitions))}
	if !v.racks {
		return out
	}
	out.Racks = make([][]string, len(t.Partitions))
	for i, p := range t.Partitions {
		out.Racks[i] = v.racksOf(p)
	}
	return out
}

// racksOf lists the racks of a partition's replicas, without doubles and in order.
func (v *topicsView) racksOf(p *cluster.Partition) []string {
	var racks []string
	for _, id := range p.Replicas {
		b, ok := v.image.Broker(id)
		if !ok || b.Rack == "" {
			continue
		}
		if at, found := slices.BinarySearch(racks, b.Rack); !found {
			racks = slices.Insert(racks, at, b.Rack)
		}
	}
	return racks
}

// configOf resolves how coordinators are configured.
func (r *rootActor) configOf(image *cluster.Image) (*config.GroupValues, *coord.Config) {
	v := r.broker.Groups
	c := coord.DefaultConfig()
	c.SessionTimeoutMin, c.SessionTimeoutMax, c.InitialRebalanceDelay, c.ClassicSizeMax = v.SessionMinMs, v.SessionMaxMs, v.InitialDelayMs, v.SizeMax
	c.ConsumerProtocol = v.ConsumerProtocol && image.FeatureLevel(cluster.GroupVersion) >= 1
	c.ConsumerSizeMax, c.Assignors, c.MigrationUp, c.MigrationDown, c.RegexRefreshInterval = v.ConsumerSizeMax, v.Assignors, v.MigrateUp, v.MigrateDown, v.RegexRefreshMs
	c.Consumer = coord.ConsumerConfig{SessionTimeout: v.SessionMs.Value, HeartbeatInterval: v.HeartbeatMs.Value, AssignmentInterval: v.AssignmentInterval.Value}
	c.OffsetsRetention, c.OffsetsCheckInterval = v.RetentionMs, v.RetentionCheckMs
	c.OffsetMetadataMax = v.MetadataBytesMax
	c.RecordBytesMax = config.TopicOf(image.Stack(cluster.OffsetsTopic, r.shared.identity.Broker, r.shared.static)).MaxMessageBytes
	stack := image.Stack("", r.shared.identity.Broker, r.shared.static)
	for res := range image.ConfigResources(config.GroupResource) {
		stack.Override = image.Configs(res)
		g := config.ConsumerGroupOf(stack, &v)
		if c.Groups == nil {
			c.Groups = make(map[string]coord.ConsumerConfig)
		}
		c.Groups[res.Name] = coord.ConsumerConfig{SessionTimeout: g.SessionMs, HeartbeatInterval: g.HeartbeatMs, AssignmentInterval: g.AssignmentIntervalMs}
	}
	return &v, &c
}

// newWorld makes what coordinators know, of an image.
func (r *rootActor) newWorld(image *cluster.Image, configs, topics bool) {
	w := &groupsWorld{topics: viewTopics(image)}
	if old := r.world; old != nil {
		*w = *old
		if topics {
			w.topics = viewTopics(image)
		}
	}
	if configs || r.world == nil {
		w.values, w.config = r.configOf(image)
	}
	r.world = w
}

// tellCoordinators tells the coordinators here what a change of the metadata means to them.
func (r *rootActor) tellCoordinators(t *runtime.Turn, image *cluster.Image, d *cluster.Delta) {
	configs := d.Features
	for _, res := range d.Configs {
		configs = configs || res.Type == config.BrokerResource || res.Type == config.GroupResource ||
			res.Type == config.TopicResource && res.Name == cluster.OffsetsTopic
	}
	topics := len(d.Topics) > 0
	if !configs && !topics {
		return
	}
	m := &groupsChanged{}
	for _, td := range d.Topics {
		if td.From != nil && (td.To == nil || td.To.ID != td.From.ID) {
			m.deleted = append(m.deleted, coord.DeletedTopic{Name: td.From.Name, ID: td.From.ID})
		}
	}
	r.newWorld(image, configs, topics)
	m.world = r.world
	table := r.table
	if table == nil {
		table = r.shared.topics.Load()
	}
	for _, ref := range table.coordinators() {
		_ = t.Send(ref, m) // one that has stopped needs to know nothing
	}
}

// coordinators lists the coordinators here, in the order of their partitions.
func (t *topicTable) coordinators() []*runtime.Ref {
	e := t.byName[cluster.OffsetsTopic]
	if e == nil {
		return nil
	}
	var refs []*runtime.Ref
	for _, rep := range e.replicas {
		if rep != nil && rep.coordinator != nil {
			refs = append(refs, rep.coordinator)
		}
	}
	return refs
}

// spawnCoordinator starts the coordinator of a partition of the offsets topic, beside its replica.
func (r *rootActor) spawnCoordinator(t *runtime.Turn, image *cluster.Image, topic *cluster.Topic, rep *replica) {
	if r.world == nil {
		r.newWorld(image, true, true)
	}
	number := rep.tp.Partition
	b := &coordinatorActor{
		shared: r.shared, replica: rep, world: r.world, leading: topic.Partitions[number].Leader == r.shared.identity.Broker,
		blamed: r.blamed[ident.TopicPartition{Topic: coordinatorName, Partition: number}],
		log:    r.log.With().Str("topic", topic.Name).Int32("partition", number).Logger(),
	}
	// A topic of this name may have been deleted a moment ago, and its coordinators not be gone yet: the id tells them apart.
	ref, err := t.Spawn(cast("coordinator", coordinatorName+"-"+strconv.Itoa(int(number))+":"+topic.ID.String(), b))
	switch {
	case errors.Is(err, runtime.ErrStopped):
		return // as for a partition
	case err != nil:
		panic("broker: a coordinator could not be spawned: " + err.Error())
	}
	rep.coordinator = ref
}
