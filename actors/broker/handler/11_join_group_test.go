package handler_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// TestTheIDOfANewMemberIsAString joins with names that are as long as the protocol allows: the id that is made of them fits the protocol, and the log, too.
func TestTheIDOfANewMemberIsAString(t *testing.T) {
	for _, name := range []string{"", "app", strings.Repeat("x", wire.StringMax), strings.Repeat("x", wire.StringMax-37), strings.Repeat("ä", wire.StringMax/2)} {
		for _, static := range []bool{false, true} {
			k := newKit(t)
			req := kmsg.NewPtrJoinGroupRequest()
			req.Group = "g"
			k.client.ID = name
			if static {
				k.client.ID, req.InstanceID = "other", &name
			}
			var made string
			k.ports.coordinator = func(_ string, c coord.Command) coord.Answer {
				made = c.(*coord.Join).NewMember
				return &coord.JoinReply{Code: wire.MemberIDRequired, Member: made}
			}
			resp := k.ask(9, req).(*kmsg.JoinGroupResponse)
			if len(made) < 37 || len(made) > wire.StringMax || !utf8.ValidString(made) || resp.MemberID != made {
				t.Errorf("a name of %d bytes: an id of %d bytes was made, one of %d was told", len(name), len(made), len(resp.MemberID))
			}
			if static && name == "" {
				continue // that is no instance
			}
			if begin := made[:max(0, len(made)-37)]; !strings.HasPrefix(name, begin) || len(name) < 1000 && begin != name {
				t.Errorf("%q became %q", name, made)
			}
		}
	}
}
