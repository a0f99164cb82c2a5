package handler

import (
	"net/netip"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Func answers one request, by c.Respond or c.Close, before it returns or from the answer function of a port.
type Func func(c *Call)

// Call is one request being answered. It belongs to the handler until Respond or Close; after that it must not be touched.
type Call struct {
	Key         int16
	Version     int16
	Correlation int32
	Request     kmsg.Request // decoded, its version set; strings and byte slices in it may alias the frame, which lives until the answer
	Client      *Client
	Env         *Env

	outcome  Outcome
	answered bool
}

// Outcome is where the answer of a Call goes. The session implements it.
type Outcome interface {
	// Respond encodes response and queues it in the order of the requests.
	Respond(c *Call, response kmsg.Response)
	// Close gives the connection up: earlier answers are sent, this request and later ones are not answered. reason is for the log.
	Close(c *Call, reason error)
}

// Begin makes a Call ready for a handler. Only sessions and tests call it.
func (c *Call) Begin(outcome Outcome) {
	c.outcome, c.answered = outcome, false
}

// Respond answers the request. response must be of the request's kind; its version is set here. Answering twice is a bug and panics.
func (c *Call) Respond(response kmsg.Response) {
	c.once()
	response.SetVersion(c.Version)
	c.outcome.Respond(c, response)
}

// Close closes the connection instead of answering, as Kafka does where the protocol has no error to give.
func (c *Call) Close(reason error) {
	c.once()
	c.outcome.Close(c, reason)
}

func (c *Call) once() {
	if c.answered {
		panic("handler: a request was answered twice")
	}
	c.answered = true
}

// Client is who asks. One value lives as long as the connection; handlers may read it, and ApiVersions fills in the software.
type Client struct {
	Address         netip.AddrPort
	ID              string // client.id of the request's header, empty when null
	Listener        string // name of the listener the connection came in by
	Principal       string // "User:ANONYMOUS" without authentication
	SoftwareName    string // as told by ApiVersions v3+, checked; empty before
	SoftwareVersion string

	host string // of Host
}

// Name notes the client id of a request. It allocates only when the id changes.
func (c *Client) Name(id []byte) {
	if c.ID != string(id) {
		c.ID = string(id)
	}
}

// Now is the time at which a request began.
type Now struct {
	Mono ident.Instant
	Wall ident.Millis
}

// Env is what a handler may know. It is made anew for each request and never changes; what it points to is immutable or safe for concurrent use.
type Env struct {
	Broker  ident.BrokerID
	Cluster ident.ClusterID
	Image   *cluster.Image // the newest published one when the request began
	Static  config.Set     // this broker's file, environment and flags
	Now     Now
	Ports   Ports
}
