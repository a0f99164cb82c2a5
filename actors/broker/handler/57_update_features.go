package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
)

// UpdateFeatures (57), versions 0 to 2.
//
// As in Kafka: all updates of a request are made or none; version 0 allows a downgrade with a flag, later ones with a type; when an update is refused, the
// answer as a whole carries its error; below version 2 a successful answer lists the features. Different: a timeout of 0 or less waits for the answer.

func updateFeatures(c *Call) {
	req := c.Request.(*kmsg.UpdateFeaturesRequest)
	cmd := &cluster.UpdateFeatures{ValidateOnly: req.ValidateOnly}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for i := range req.FeatureUpdates {
		u := &req.FeatureUpdates[i]
		kind := cluster.UpgradeKind(u.UpgradeType)
		if c.Version == 0 {
			kind = cluster.Upgrade
			if u.AllowDowngrade {
				kind = cluster.SafeDowngrade
			}
		}
		cmd.Updates = append(cmd.Updates, cluster.FeatureUpdate{Name: u.Feature, Level: u.MaxVersionLevel, Kind: kind})
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.UpdateFeaturesReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp := kmsg.NewPtrUpdateFeaturesResponse()
		if r.Err == nil {
			for i := range body.Features {
				out := kmsg.NewUpdateFeaturesResponseResult()
				out.Feature = body.Features[i].Name
				resp.Results = append(resp.Results, out)
				if err := body.Features[i].Err; err != nil && r.Err == nil {
					r.Err = &cluster.Error{Code: err.Code, Message: "no feature was updated: " + err.Message}
				}
			}
		}
		if r.Err != nil {
			resp.ErrorCode, resp.ErrorMessage = refusal(r.Err)
			resp.Results = nil
		}
		c.Respond(resp)
	})
}
