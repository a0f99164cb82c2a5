package main

// The extension actors of this binary. Each registers itself; actors.enabled in the configuration says which run. An actor
// of your own is one more line here (docs/extending.md).
import (
	_ "github.com/troupe-broker/troupe/actors/observer/topichits" // counts appended bytes by topic
)
