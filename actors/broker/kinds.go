package broker

import (
	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
)

// kindPartition is the kind of the actor that has a replica.
var kindPartition = actors.CoreInfo("partition").ID()

// kindCoordinator is the kind of the actor that coordinates groups.
var kindCoordinator = actors.CoreInfo("coordinator").ID()

// coordinatorName is what names of coordinators begin with, which no topic's can.
const coordinatorName = "@groups"

// cast makes an actor of a member of the cast, with the kind, the bounds and the policy that are declared in package actors.
func cast(member, name string, b runtime.Behaviour) runtime.Spec {
	return actors.CoreInfo(member).Spec(name, b)
}

// blocking gives an actor a goroutine of its own.
func blocking(s runtime.Spec) runtime.Spec {
	s.Blocking = true
	return s
}
