package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// ApiVersions (18), versions 0 to 5.
//
// As in Kafka: a version that is not known is answered in version 0 with UNSUPPORTED_VERSION and the range of ApiVersions alone (KIP-511); the software's
// name and version must look like names (KIP-511); from version 5 on a client that says which cluster and broker it means is told when it met another
// (KIP-1242); features whose minimum is 0 are left out below version 4 (KAFKA-17011); the minimum of Produce is told as 0 (KAFKA-18659).

func apiVersions(c *Call) {
	req := c.Request.(*kmsg.ApiVersionsRequest)
	resp := kmsg.NewPtrApiVersionsResponse()
	if c.Version >= 3 {
		if !softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion) {
			resp.ErrorCode = int16(wire.InvalidRequest)
			c.Respond(resp)
			return
		}
		c.Client.SoftwareName, c.Client.SoftwareVersion = req.ClientSoftwareName, req.ClientSoftwareVersion
	}
	if code := meant(c, req); code != wire.NoError {
		resp.ErrorCode = int16(code)
		c.Respond(resp)
		return
	}
	for _, api := range wire.APIs() {
		if !api.Internal {
			resp.ApiKeys = append(resp.ApiKeys, apiKey(&api))
		}
	}
	addFeatures(c, resp)
	c.Respond(resp)
}

func apiKey(api *wire.API) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = int16(api.Key), api.AdvertisedMin, api.Max
	return k
}

// UnsupportedApiVersions is the answer to an ApiVersions request of a version that is not known.
func UnsupportedApiVersions() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = int16(wire.UnsupportedVersion)
	if api, ok := wire.Lookup(wire.KeyApiVersions); ok {
		resp.ApiKeys = append(resp.ApiKeys, apiKey(api))
	}
	return resp
}

// addFeatures tells what features this build can serve and which are finalised.
func addFeatures(c *Call, resp *kmsg.ApiVersionsResponse) {
	if c.Version < 3 {
		return
	}
	if self, ok := c.Env.Image.Broker(c.Env.Broker); ok {
		for _, f := range self.Features {
			if f.Min == 0 && c.Version < 4 {
				continue
			}
			s := kmsg.NewApiVersionsResponseSupportedFeature()
			s.Name, s.MinVersion, s.MaxVersion = f.Name, f.Min, f.Max
			resp.SupportedFeatures = append(resp.SupportedFeatures, s)
		}
	}
	resp.FinalizedFeaturesEpoch = int64(c.Env.Image.Index())
	for _, f := range c.Env.Image.Features() {
		k := kmsg.NewApiVersionsResponseFinalizedFeature()
		k.Name, k.MinVersionLevel, k.MaxVersionLevel = f.Name, f.Level, f.Level
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, k)
	}
}

// meant says what is wrong with the cluster and broker that the client believes to speak with. It tells both or none.
func meant(c *Call, req *kmsg.ApiVersionsRequest) wire.ErrorCode {
	switch {
	case c.Version < 5 || req.ClusterID == nil && req.NodeID == -1:
		return wire.NoError
	case req.ClusterID == nil || req.NodeID == -1:
		return wire.InvalidRequest
	case *req.ClusterID != string(c.Env.Cluster) || req.NodeID != int32(c.Env.Broker):
		return wire.RebootstrapRequired
	}
	return wire.NoError
}

// softwareName says whether a client's name or version looks like one: letters, digits, dots and dashes, the first and the last a letter or digit.
func softwareName(s string) bool {
	alnum := func(b byte) bool { return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' }
	if s == "" || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	return !slices.ContainsFunc([]byte(s), func(b byte) bool { return !alnum(b) && b != '.' && b != '-' })
}
