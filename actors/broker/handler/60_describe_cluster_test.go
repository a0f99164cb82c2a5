package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

func TestDescribeClusterTellsBrokersByListener(t *testing.T) {
	versions(t, wire.KeyDescribeCluster, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, smallCluster()...)
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType = 1
		resp := k.ask(version, req).(*kmsg.DescribeClusterResponse)
		if resp.ClusterID != "cluster-id" || resp.ControllerID != 1 || resp.ErrorCode != 0 || resp.EndpointType != 1 || resp.ClusterAuthorizedOperations != -1<<31 {
			t.Errorf("%+v", resp)
		}
		brokers := []kmsg.DescribeClusterResponseBroker{{NodeID: 1, Host: "b1", Port: 9092}, {NodeID: 2, Host: "b2", Port: 9092, Rack: new("r2")}}
		same(t, "brokers", resp.Brokers, brokers)
		req.IncludeClusterAuthorizedOperations, req.IncludeFencedBrokers = true, true
		resp = k.ask(version, req).(*kmsg.DescribeClusterResponse)
		same(t, "operations", resp.ClusterAuthorizedOperations, int32(8096))
		if version >= 2 {
			brokers = append(brokers, kmsg.DescribeClusterResponseBroker{NodeID: 3, Host: "b3", Port: 9092, IsFenced: true})
		}
		same(t, "with fenced", resp.Brokers, brokers)
		k.client.Listener = "EXTERNAL"
		if got := k.ask(version, req).(*kmsg.DescribeClusterResponse).Brokers; len(got) != 1 || got[0].Host != "out2" || got[0].Port != 19092 {
			t.Errorf("%+v", got)
		}
	})
}

func TestOnlyBrokersHaveEndpoints(t *testing.T) {
	versions(t, wire.KeyDescribeCluster, 1, func(t *testing.T, version int16) {
		t.Helper()
		for kind, want := range map[int8]wire.ErrorCode{2: wire.MismatchedEndpointType, 0: wire.UnsupportedEndpointType, 3: wire.UnsupportedEndpointType} {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.EndpointType = kind
			resp := newKit(t, smallCluster()...).ask(version, req).(*kmsg.DescribeClusterResponse)
			code(t, "type", resp.ErrorCode, want)
			if len(resp.Brokers) != 0 || resp.ErrorMessage == nil {
				t.Errorf("%+v", resp)
			}
		}
	})
}
