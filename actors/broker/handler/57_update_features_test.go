package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

func TestUpdateFeaturesIsAllOrNothing(t *testing.T) {
	versions(t, wire.KeyUpdateFeatures, 0, func(t *testing.T, version int16) {
		t.Helper()
		req := kmsg.NewPtrUpdateFeaturesRequest()
		req.TimeoutMillis, req.ValidateOnly = 30, true
		for i, name := range []string{"up", "down"} {
			u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
			u.Feature, u.MaxVersionLevel, u.AllowDowngrade, u.UpgradeType = name, int16(i)+4, i == 1, int8(1+2*i)
			req.FeatureUpdates = append(req.FeatureUpdates, u)
		}
		down := cluster.UnsafeDowngrade
		if version == 0 {
			down = cluster.SafeDowngrade // a flag says no more
		}
		k := newKit(t)
		body := &cluster.UpdateFeaturesReply{Features: []cluster.FeatureResult{{Name: "up"}, {Name: "down"}}}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.UpdateFeatures)
			same(t, "updates", got.Updates, []cluster.FeatureUpdate{{Name: "up", Level: 4, Kind: cluster.Upgrade}, {Name: "down", Level: 5, Kind: down}})
			if got.ValidateOnly != (version >= 1) || got.Deadline != 1000+30*1000000 {
				t.Errorf("%+v", got)
			}
			return cluster.Reply{Body: body}
		}
		resp := k.ask(version, req).(*kmsg.UpdateFeaturesResponse)
		code(t, "done", resp.ErrorCode, wire.NoError)
		if version < 2 {
			same(t, "results", resp.Results, []kmsg.UpdateFeaturesResponseResult{{Feature: "up"}, {Feature: "down"}})
		}
		body.Features[1].Err = &cluster.Error{Code: wire.InvalidUpdateVersion, Message: "why"}
		resp = k.ask(version, req).(*kmsg.UpdateFeaturesResponse)
		code(t, "refused", resp.ErrorCode, wire.InvalidUpdateVersion)
		same(t, "message", deref(resp.ErrorMessage), "no feature was updated: why")
		if len(resp.Results) != 0 {
			t.Errorf("results of a refused request: %+v", resp.Results)
		}
		k.ports.controller = func(cluster.Command) cluster.Reply {
			return cluster.Reply{Err: &cluster.Error{Code: wire.NotController, Message: "elsewhere"}}
		}
		code(t, "not the controller", k.ask(version, req).(*kmsg.UpdateFeaturesResponse).ErrorCode, wire.NotController)
	})
}
