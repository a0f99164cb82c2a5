package handler_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

func apiVersionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "kit", "1.0"
	return req
}

// Behaviours 5, 8 and 10: what is served is told, and nothing else.
func TestApiVersionsTellsTheTable(t *testing.T) {
	versions(t, wire.KeyApiVersions, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, smallCluster()...)
		resp := k.ask(version, apiVersionsRequest()).(*kmsg.ApiVersionsResponse)
		code(t, "answer", resp.ErrorCode, wire.NoError)
		var want []kmsg.ApiVersionsResponseApiKey
		for _, api := range wire.APIs() {
			want = append(want, kmsg.ApiVersionsResponseApiKey{ApiKey: int16(api.Key), MinVersion: api.AdvertisedMin, MaxVersion: api.Max})
		}
		same(t, "keys", resp.ApiKeys, want)
		if produce := resp.ApiKeys[0]; produce.ApiKey != 0 || produce.MinVersion != 0 {
			t.Errorf("produce is told as %+v, and old librdkafka needs a minimum of 0", produce)
		}
		if version >= 3 {
			same(t, "software", k.client.SoftwareName+" "+k.client.SoftwareVersion, "kit 1.0")
		}
	})
}

// Behaviour 1: the answer to a version that is not known.
func TestAnUnknownVersionOfApiVersionsIsAnsweredInVersion0(t *testing.T) {
	resp := handler.UnsupportedApiVersions().(*kmsg.ApiVersionsResponse)
	resp.SetVersion(0)
	back := kmsg.NewPtrApiVersionsResponse()
	if err := back.ReadFrom(resp.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	code(t, "answer", back.ErrorCode, wire.UnsupportedVersion)
	if len(back.ApiKeys) != 1 || back.ApiKeys[0].ApiKey != 18 || back.ApiKeys[0].MaxVersion < 5 {
		t.Errorf("%+v, want the range of ApiVersions alone", back.ApiKeys)
	}
}

// Behaviour 2.
func TestSoftwareMustBeNamedLikeSoftware(t *testing.T) {
	versions(t, wire.KeyApiVersions, 3, func(t *testing.T, version int16) {
		t.Helper()
		for name, want := range map[string]wire.ErrorCode{
			"apache-kafka-java": wire.NoError, "x": wire.NoError, "1.2.3-rc1": wire.NoError,
			"": wire.InvalidRequest, "-x": wire.InvalidRequest, "x-": wire.InvalidRequest, "a b": wire.InvalidRequest, "ä": wire.InvalidRequest,
		} {
			for _, asVersion := range []bool{false, true} {
				req := apiVersionsRequest()
				if asVersion {
					req.ClientSoftwareVersion = name
				} else {
					req.ClientSoftwareName = name
				}
				k := newKit(t, smallCluster()...)
				resp := k.ask(version, req).(*kmsg.ApiVersionsResponse)
				code(t, name, resp.ErrorCode, want)
				if want != wire.NoError && (k.client.SoftwareName != "" || len(resp.ApiKeys) != 0) {
					t.Errorf("%q was taken for a name", name)
				}
			}
		}
	})
}

// Behaviour 3.
func TestAClientThatMeantAnotherBrokerIsTold(t *testing.T) {
	versions(t, wire.KeyApiVersions, 0, func(t *testing.T, version int16) {
		t.Helper()
		for _, c := range []struct {
			cluster *string
			node    int32
			want    wire.ErrorCode
		}{
			{nil, -1, wire.NoError},
			{new("cluster-id"), 1, wire.NoError},
			{new("cluster-id"), 2, wire.RebootstrapRequired},
			{new("another"), 1, wire.RebootstrapRequired},
		} {
			req := apiVersionsRequest()
			req.ClusterID, req.NodeID = c.cluster, c.node
			want := c.want
			if version < 5 {
				want = wire.NoError
			}
			code(t, "answer", newKit(t, smallCluster()...).ask(version, req).(*kmsg.ApiVersionsResponse).ErrorCode, want)
		}
	})
}

// Behaviour 4.
func TestFeaturesWithMinimum0AreLeftOutForOldClients(t *testing.T) {
	versions(t, wire.KeyApiVersions, 0, func(t *testing.T, version int16) {
		t.Helper()
		self := registration(1, false, "PLAINTEXT")
		self.Features = []cluster.FeatureRange{{Name: "from.one", Min: 1, Max: 3}, {Name: "from.zero", Min: 0, Max: 2}}
		k := newKit(t, self, &cluster.FeatureLevelRecord{Name: "from.one", Level: 2})
		resp := k.ask(version, apiVersionsRequest()).(*kmsg.ApiVersionsResponse)
		var supported []string
		for _, f := range resp.SupportedFeatures {
			supported = append(supported, f.Name)
		}
		var want []string
		if version >= 3 {
			want = append(want, "from.one")
			same(t, "finalised", resp.FinalizedFeatures, []kmsg.ApiVersionsResponseFinalizedFeature{{Name: "from.one", MinVersionLevel: 2, MaxVersionLevel: 2}})
			same(t, "epoch", resp.FinalizedFeaturesEpoch, int64(1))
		}
		if version >= 4 {
			want = append(want, "from.zero")
		}
		if !slices.Equal(supported, want) {
			t.Errorf("supported features %v, want %v", supported, want)
		}
	})
}
