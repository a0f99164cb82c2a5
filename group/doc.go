// Package group is the place of the coordinators: consumer groups, their offsets and transactions, as pure machines.
// It holds no machine yet; the broker serves none of their APIs and advertises none.
//
// What the place asks of whoever builds here is fixed, because floor 2 is shaped for it: a request proposes records and
// holds its response back; the shell appends the records to the coordinator's own partition; only the replay of
// committed records changes hard state; then the response leaves. Live state must equal replay. Each kind of group is a
// package of its own (classic, consumer, share, txn, and assign for the assignors), none imports another machine, and
// the rules of the house for machines hold: no clock, file, socket or random number.
package group
