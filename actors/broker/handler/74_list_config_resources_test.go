package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// Behaviour 70.
func TestListConfigResources(t *testing.T) {
	all := []kmsg.ListConfigResourcesResponseConfigResource{
		{Name: "a", Type: 2}, {Name: "b", Type: 2}, {Name: "1", Type: 4}, {Name: "2", Type: 4}, {Name: "3", Type: 4}, {Name: "m", Type: 16}, {Name: "g", Type: 32},
	}
	list := func(version int16, types ...int8) *kmsg.ListConfigResourcesResponse {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = types
		return configKit(t).ask(version, req).(*kmsg.ListConfigResourcesResponse)
	}
	same(t, "all", list(1).ConfigResources, all)
	same(t, "some, in the order asked", list(1, 32, 2, 32).ConfigResources, append(all[6:7:7], all[:2]...))
	if got := list(1, 8); len(got.ConfigResources) != 0 || got.ErrorCode != 0 {
		t.Errorf("loggers: %+v", got)
	}
	if got := list(1, 2, 99); len(got.ConfigResources) != 0 || got.ErrorCode != int16(wire.UnsupportedVersion) {
		t.Errorf("a type without configs: %+v", got)
	}
	// Version 0 is an older API: client metrics alone, and their type is not said.
	old := list(0).ConfigResources
	if len(old) != 1 || old[0].Name != "m" {
		t.Errorf("version 0: %+v", old)
	}
}
