package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
)

// updateFeatures finalises feature levels, all of them or none (KIP-584).
func (c *Controller) updateFeatures(cmd *UpdateFeatures) decision {
	reply := &UpdateFeaturesReply{}
	var records []Record
	failed := false
	for i, u := range cmd.Updates {
		result := FeatureResult{Name: u.Name}
		if slices.ContainsFunc(cmd.Updates[:i], func(o FeatureUpdate) bool { return o.Name == u.Name }) {
			result.Err = refuse(wire.InvalidRequest, "feature %.100s is in the request more than once", u.Name)
		} else {
			result.Err = c.checkFeature(u)
		}
		failed = failed || result.Err != nil
		reply.Features = append(reply.Features, result)
		if u.Level != c.next.FeatureLevel(u.Name) {
			records = append(records, &FeatureLevelRecord{Name: u.Name, Level: u.Level})
		}
	}
	if failed || cmd.ValidateOnly {
		return decision{body: reply}
	}
	return decision{records: records, body: reply}
}

// checkFeature judges one update.
func (c *Controller) checkFeature(u FeatureUpdate) *Error {
	have := c.next.FeatureLevel(u.Name)
	known := slices.ContainsFunc(c.options.Features, func(f FeatureRange) bool { return f.Name == u.Name })
	switch {
	case !known:
		return refuse(wire.InvalidUpdateVersion, "there is no feature %.100s", u.Name)
	case u.Level < 0:
		return refuse(wire.InvalidUpdateVersion, "level %d of feature %s is negative", u.Level, u.Name)
	case u.Kind != Upgrade && u.Kind != SafeDowngrade && u.Kind != UnsafeDowngrade:
		return refuse(wire.InvalidUpdateVersion, "upgrade type %d of feature %s is unknown", u.Kind, u.Name)
	case u.Level < have && u.Kind == Upgrade:
		return refuse(wire.InvalidUpdateVersion, "feature %s is at level %d; going down to %d needs a downgrade type", u.Name, have, u.Level)
	case u.Level > have && u.Kind != Upgrade:
		return refuse(wire.InvalidUpdateVersion, "feature %s is at level %d; going up to %d is no downgrade", u.Name, have, u.Level)
	case u.Level < have && essential(u.Name):
		return refuse(wire.InvalidUpdateVersion, "feature %s cannot go down: what brokers tell each other may already need level %d", u.Name, have)
	case u.Level == 0:
		return nil
	case !serves(c.options.Features, u.Name, u.Level):
		return refuse(wire.InvalidUpdateVersion, "the controller on broker %d does not serve level %d of feature %s", c.options.Broker, u.Level, u.Name)
	}
	for b := range c.next.Brokers() {
		if !serves(b.Features, u.Name, u.Level) {
			return refuse(wire.InvalidUpdateVersion, "broker %d does not serve level %d of feature %s", b.ID, u.Level, u.Name)
		}
	}
	return nil
}

// PeerVersion is the feature whose level says which messages brokers may send each other.
const PeerVersion = "troupe.peer.version"

// GroupVersion is the feature whose level says whether the newer protocol of consumer groups (KIP-848) is spoken: at 1 it is.
const GroupVersion = "group.version"

// essential tells whether a feature may never go down.
func essential(name string) bool { return name == PeerVersion }
