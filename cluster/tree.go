package cluster

import (
	"iter"
	"slices"
)

// tree is an immutable ordered map, a B+ tree with path copying. A lookup reads about log32(n) nodes; a change copies that many, unless they already
// belong to the same edit: a batch of a thousand changes copies each node once.
//
// The zero tree with a compare function is empty.
type tree[K, V any] struct {
	root    *node[K, V]
	size    int
	compare func(a, b K) int
}

// edit is the identity of one batch of changes. Nodes (and topics) that carry it were made by that batch, are seen by nobody else yet, and may be
// changed in place until the batch ends. It has a size so that each one has an address of its own.
type edit struct{ _ byte }

// nodeMax is the number of keys a node may hold; a node below nodeMin joins or borrows from its neighbour.
const (
	nodeMax = 32
	nodeMin = nodeMax / 4
)

// node is a leaf (vals) or an inner node (kids). In an inner node keys[i] is a lower bound of everything under kids[i], and above everything under
// kids[i-1].
type node[K, V any] struct {
	owner *edit
	keys  []K
	vals  []V
	kids  []*node[K, V]
}

func newTree[K, V any](compare func(a, b K) int) tree[K, V] { return tree[K, V]{compare: compare} }

// get finds the value of a key.
func (t *tree[K, V]) get(k K) (V, bool) {
	for n := t.root; n != nil; {
		i, found := n.search(k, t.compare)
		if n.kids == nil {
			if found {
				return n.vals[i], true
			}
			break
		}
		n = n.kids[child(i, found)]
	}
	var zero V
	return zero, false
}

// child turns a search in an inner node into the index of the child that covers the key.
func child(i int, found bool) int {
	if !found && i > 0 {
		return i - 1
	}
	return i
}

func (n *node[K, V]) search(k K, compare func(a, b K) int) (int, bool) {
	return slices.BinarySearchFunc(n.keys, k, compare)
}

// own returns the node itself when it belongs to the edit, else a copy that does.
func (n *node[K, V]) own(e *edit) *node[K, V] {
	if n.owner == e {
		return n
	}
	c := &node[K, V]{owner: e, keys: append(make([]K, 0, nodeMax+1), n.keys...)}
	if n.kids != nil {
		c.kids = append(make([]*node[K, V], 0, nodeMax+1), n.kids...)
	} else {
		c.vals = append(make([]V, 0, nodeMax+1), n.vals...)
	}
	return c
}

// put sets a key within an edit.
func (t *tree[K, V]) put(e *edit, k K, v V) {
	if t.root == nil {
		t.root = &node[K, V]{owner: e, keys: append(make([]K, 0, nodeMax+1), k), vals: append(make([]V, 0, nodeMax+1), v)}
		t.size = 1
		return
	}
	root, right, added := t.root.put(e, k, v, t.compare)
	if added {
		t.size++
	}
	if right != nil {
		root = &node[K, V]{
			owner: e,
			keys:  append(make([]K, 0, nodeMax+1), root.keys[0], right.keys[0]),
			kids:  append(make([]*node[K, V], 0, nodeMax+1), root, right),
		}
	}
	t.root = root
}

// put returns the node that takes n's place, its new right neighbour when it was split, and whether the key is new.
func (n *node[K, V]) put(e *edit, k K, v V, compare func(a, b K) int) (self, right *node[K, V], added bool) {
	i, found := n.search(k, compare)
	n = n.own(e)
	if n.kids == nil {
		if found {
			n.vals[i] = v
			return n, nil, false
		}
		n.keys = slices.Insert(n.keys, i, k)
		n.vals = slices.Insert(n.vals, i, v)
		return n, n.split(e), true
	}
	c := child(i, found)
	kid, split, added := n.kids[c].put(e, k, v, compare)
	n.kids[c], n.keys[c] = kid, kid.keys[0]
	if split != nil {
		n.keys = slices.Insert(n.keys, c+1, split.keys[0])
		n.kids = slices.Insert(n.kids, c+1, split)
	}
	return n, n.split(e), added
}

// split cuts an overfull node and returns its right half.
func (n *node[K, V]) split(e *edit) *node[K, V] {
	if len(n.keys) <= nodeMax {
		return nil
	}
	mid := len(n.keys) / 2
	right := &node[K, V]{owner: e, keys: append(make([]K, 0, nodeMax+1), n.keys[mid:]...)}
	n.keys = n.keys[:mid]
	if n.kids != nil {
		right.kids = append(make([]*node[K, V], 0, nodeMax+1), n.kids[mid:]...)
		clear(n.kids[mid:])
		n.kids = n.kids[:mid]
	} else {
		right.vals = append(make([]V, 0, nodeMax+1), n.vals[mid:]...)
		clear(n.vals[mid:])
		n.vals = n.vals[:mid]
	}
	return right
}

// remove deletes a key within an edit and tells whether it was there.
func (t *tree[K, V]) remove(e *edit, k K) bool {
	if _, ok := t.get(k); !ok {
		return false
	}
	t.size--
	root := t.root.remove(e, k, t.compare)
	for root != nil && root.kids != nil && len(root.kids) == 1 {
		root = root.kids[0]
	}
	if root != nil && len(root.keys) == 0 {
		root = nil
	}
	t.root = root
	return true
}

// remove deletes a key that is known to be there and returns the node that takes n's place, possibly empty.
func (n *node[K, V]) remove(e *edit, k K, compare func(a, b K) int) *node[K, V] {
	i, found := n.search(k, compare)
	n = n.own(e)
	if n.kids == nil {
		n.keys = slices.Delete(n.keys, i, i+1)
		n.vals = slices.Delete(n.vals, i, i+1)
		return n
	}
	c := child(i, found)
	kid := n.kids[c].remove(e, k, compare)
	n.kids[c] = kid
	if len(kid.keys) > 0 {
		n.keys[c] = kid.keys[0]
	}
	if len(kid.keys) < nodeMin {
		n.mend(e, c)
	}
	return n
}

// mend joins the small child c with a neighbour; a pair too big for one node is split again in the middle.
func (n *node[K, V]) mend(e *edit, c int) {
	if len(n.kids) == 1 {
		if len(n.kids[0].keys) == 0 {
			n.keys, n.kids = n.keys[:0], n.kids[:0]
		}
		return
	}
	if c == len(n.kids)-1 {
		c--
	}
	left := n.kids[c].own(e)
	next := n.kids[c+1]
	left.keys = append(left.keys, next.keys...)
	left.vals = append(left.vals, next.vals...)
	left.kids = append(left.kids, next.kids...)
	n.kids = slices.Delete(n.kids, c+1, c+2)
	n.keys = slices.Delete(n.keys, c+1, c+2)
	n.kids[c], n.keys[c] = left, left.keys[0]
	if right := left.split(e); right != nil {
		n.keys = slices.Insert(n.keys, c+1, right.keys[0])
		n.kids = slices.Insert(n.kids, c+1, right)
	}
}

// all yields everything in order.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	root := t.root
	return func(yield func(K, V) bool) {
		if root != nil {
			root.walk(yield)
		}
	}
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	if n.kids == nil {
		for i, k := range n.keys {
			if !yield(k, n.vals[i]) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.kids {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}

// from yields everything at or after a key, in order.
func (t *tree[K, V]) from(k K) iter.Seq2[K, V] {
	root, compare := t.root, t.compare
	return func(yield func(K, V) bool) {
		if root != nil {
			root.walkFrom(k, compare, yield)
		}
	}
}

func (n *node[K, V]) walkFrom(k K, compare func(a, b K) int, yield func(K, V) bool) bool {
	i, found := n.search(k, compare)
	if n.kids == nil {
		for ; i < len(n.keys); i++ {
			if !yield(n.keys[i], n.vals[i]) {
				return false
			}
		}
		return true
	}
	c := child(i, found)
	if !n.kids[c].walkFrom(k, compare, yield) {
		return false
	}
	for c++; c < len(n.kids); c++ {
		if !n.kids[c].walk(yield) {
			return false
		}
	}
	return true
}
