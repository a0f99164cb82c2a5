package config

// Class is what setting a key does; the package comment says what each class promises.
type Class uint8

const (
	Honoured Class = iota + 1
	Accepted       // accepted without effect
	Refused        // any value but the neutral one is an error with Key.Reason
)

// String returns the word docs/configs.md uses.
func (c Class) String() string {
	switch c {
	case Honoured:
		return "honoured"
	case Accepted:
		return "accepted without effect"
	case Refused:
		return "refused"
	}
	return "unclassified"
}

// Type is the type of a value. The numbers are those of DescribeConfigs.
type Type int8

const (
	Bool     Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7 // words separated by commas
	ClassRef Type = 8 // name of a Java class; accepted or refused, never loaded
	Password Type = 9 // never shown
)

var typeNames = [...]string{Bool: "boolean", String: "string", Int: "int", Short: "short", Long: "long", Double: "double", List: "list", ClassRef: "class", Password: "password"}

// String returns Kafka's word for the type.
func (t Type) String() string {
	if t < Bool || t > Password {
		return "unknown"
	}
	return typeNames[t]
}

// Update says when a changed value takes effect.
type Update uint8

const (
	ReadOnly    Update = iota // at the next start; not through AlterConfigs
	PerBroker                 // dynamic, for one broker at a time
	ClusterWide               // dynamic, as the default of all brokers or for one
	ClusterOnly               // dynamic, only as the default of all brokers: the controller decides by it
)

// String returns Kafka's word for the mode.
func (u Update) String() string {
	switch u {
	case ReadOnly:
	case PerBroker:
		return "per-broker"
	case ClusterWide:
		return "cluster-wide"
	case ClusterOnly:
		return "cluster-only"
	}
	return "read-only"
}

// Unit says what a number counts, for documents and for humans.
type Unit string

const (
	NoUnit       Unit = ""
	Bytes        Unit = "bytes"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Minutes      Unit = "min"
	Hours        Unit = "h"
	PerSecond    Unit = "per second"
	BytesPerSec  Unit = "bytes per second"
	Percent      Unit = "percent"
)

// Key is one configuration key.
type Key struct {
	Name     string
	Type     Type
	Default  string // as text; meaningless when Null
	Null     bool   // the default is null: unset
	Class    Class
	Reason   string // Accepted: why it has no effect. Refused: why, and what to do
	Doc      string // one or two sentences, shown by DescribeConfigs and docs/configs.md
	Unit     Unit
	Update   Update
	Internal bool // Kafka's test hooks: known, not documented, not described
	Hidden   bool // Password and the like: DescribeConfigs gives null
	Synonyms []Synonym
	Check    Check    // nil: any value of the type
	Neutral  []string // Refused: values that change nothing and are therefore let through, beside the default

	table *Table
}

// Synonym is a broker key that supplies a topic or group key's default. Factor converts its unit: a value of log.retention.hours times Factor is
// retention.ms. 0 means 1.
type Synonym struct {
	Name   string
	Factor int64
}

// Check judges a value that already has the key's type. It returns a sentence for the user, without key and value, or "".
type Check func(v Value) string
