// Package broker is the cast of a Troupe broker: the actors that stand between sockets, disks and the pure machines.
package broker
