package wire

// Key is the number of a Kafka API.
type Key int16

// The APIs that are served.
const (
	KeyProduce                 Key = 0
	KeyFetch                   Key = 1
	KeyListOffsets             Key = 2
	KeyMetadata                Key = 3
	KeyApiVersions             Key = 18
	KeyCreateTopics            Key = 19
	KeyDeleteTopics            Key = 20
	KeyDeleteRecords           Key = 21
	KeyInitProducerID          Key = 22
	KeyOffsetForLeaderEpoch    Key = 23
	KeyDescribeConfigs         Key = 32
	KeyAlterConfigs            Key = 33
	KeyDescribeLogDirs         Key = 35
	KeyCreatePartitions        Key = 37
	KeyIncrementalAlterConfigs Key = 44
	KeyDescribeQuorum          Key = 55
	KeyUpdateFeatures          Key = 57
	KeyDescribeCluster         Key = 60
	KeyDescribeProducers       Key = 61
	KeyListConfigResources     Key = 74
	KeyDescribeTopicPartitions Key = 75
)

// API is one row of the table.
type API struct {
	Key           Key
	Name          string
	Min, Max      int16 // versions served
	Flexible      int16 // first version with compact and tagged fields; -1: none
	AdvertisedMin int16 // in ApiVersions; below Min only for Produce
	Authorization Operation
	Internal      bool // not advertised
	BodyMax       int32
	Amplification int32
}

// Operation is the kind of right that an API demands.
type Operation string

// Lookup finds the row of a key.
func Lookup(k Key) (*API, bool) { panic("not written yet") }

// APIs returns all rows by key, internal ones too. Do not change it.
func APIs() []*API { panic("not written yet") }

// Serves tells whether the version is served.
func (a *API) Serves(version int16) bool { return version >= a.Min && version <= a.Max }

// IsFlexible tells whether the version has compact and tagged fields.
func (a *API) IsFlexible(version int16) bool { return a.Flexible >= 0 && version >= a.Flexible }

// Memory is how many bytes of credit a request of this API whose frame has size
// bytes reserves: the frame itself and the most that decoding it can allocate.
func (a *API) Memory(size int) int64 { panic("not written yet") }
