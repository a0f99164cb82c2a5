package handler

import "slices"

// table maps an API key to the function that answers it, one line an API. Produce and Fetch are not in it: the session gives their frames to the
// operations of the broker package, which use this package's Produce and Fetch.
var table = map[int16]Func{}

// For returns the handler of an API key, or nil when the broker does not serve it through this table.
func For(key int16) Func { return table[key] }

// Keys returns the keys that have a handler, in order.
func Keys() []int16 {
	keys := make([]int16, 0, len(table))
	for key := range table {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
