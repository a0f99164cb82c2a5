package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// DescribeCluster (60), versions 0 to 2.
//
// As in Kafka: endpoints are those of the listener the request came in by; fenced brokers are told from version 2 on, on request; whoever wants to speak to
// controllers is told that this is a broker (MISMATCHED_ENDPOINT_TYPE). Different: the controller that clients are told is the broker that answers, since
// every broker takes admin requests.

// The endpoint types of DescribeCluster.
const (
	endpointBroker     = 1
	endpointController = 2
)

func describeCluster(c *Call) {
	req := c.Request.(*kmsg.DescribeClusterRequest)
	resp := kmsg.NewPtrDescribeClusterResponse()
	if c.Version >= 1 && req.EndpointType != endpointBroker {
		if req.EndpointType == endpointController {
			resp.ErrorCode = int16(wire.MismatchedEndpointType)
			resp.ErrorMessage = new("this is a broker; controllers have no endpoints of their own here")
		} else {
			resp.ErrorCode = int16(wire.UnsupportedEndpointType)
			resp.ErrorMessage = new("endpoint type " + strconv.Itoa(int(req.EndpointType)) + " is unknown: 1 means brokers, 2 controllers")
		}
		c.Respond(resp)
		return
	}
	v := c.view()
	for b, e := range v.brokers(c.Version >= 2 && req.IncludeFencedBrokers) {
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Host, out.Port, out.Rack, out.IsFenced = int32(b.ID), e.Host, int32(e.Port), rack(b), b.Fenced
		resp.Brokers = append(resp.Brokers, out)
	}
	resp.ClusterID, resp.ControllerID = string(c.Env.Cluster), int32(v.controller())
	resp.ClusterAuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, allClusterOperations)
	c.Respond(resp)
}
