package wire

// HeartbeatRequest is a Heartbeat request (API 12) in place: its slices alias the
// frame. Members of groups send one every few seconds, for as long as they live,
// so it is decoded without allocating.
type HeartbeatRequest struct {
	Group      []byte
	Member     []byte
	Instance   []byte // version 3 and later; nil: a dynamic member
	Generation int32
}

// Decode reads the body of a request of a version that is served. Unknown tagged
// fields are passed over. The error is a *ProtocolError.
func (h *HeartbeatRequest) Decode(version int16, body []byte) error {
	api, _ := Lookup(KeyHeartbeat)
	flexible := api.IsFlexible(version)
	r := reader{b: body}
	h.Group = r.string(flexible)
	h.Generation = r.int32()
	h.Member = r.string(flexible)
	h.Instance = nil
	if version >= 3 {
		h.Instance = r.nullableString(flexible)
	}
	r.skipTags(flexible)
	if r.bad {
		return badBody(api, version, len(body))
	}
	return nil
}

// AppendHeartbeatResponse appends the body of a Heartbeat response.
func AppendHeartbeatResponse(dst []byte, version int16, code ErrorCode) []byte {
	if version >= 1 {
		dst = appendInt32(dst, 0) // throttle time
	}
	dst = appendInt16(dst, int16(code))
	api, _ := Lookup(KeyHeartbeat)
	return appendNoTags(dst, api.IsFlexible(version))
}
