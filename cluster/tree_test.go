package cluster

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// check verifies order, bounds and fill of a tree, and returns its entries.
func (t *tree[K, V]) check() error {
	n, depth := 0, -1
	var walk func(n *node[K, V], level int, root bool) error
	walk = func(nd *node[K, V], level int, root bool) error {
		if len(nd.keys) > nodeMax || len(nd.keys) == 0 || !root && len(nd.keys) < nodeMin {
			return fmt.Errorf("a node of %d keys", len(nd.keys))
		}
		for i := 1; i < len(nd.keys); i++ {
			if t.compare(nd.keys[i-1], nd.keys[i]) >= 0 {
				return fmt.Errorf("keys out of order")
			}
		}
		if nd.kids == nil {
			n += len(nd.keys)
			if depth == -1 {
				depth = level
			}
			if depth != level || len(nd.vals) != len(nd.keys) {
				return fmt.Errorf("a leaf at level %d with %d values for %d keys", level, len(nd.vals), len(nd.keys))
			}
			return nil
		}
		if root && len(nd.kids) < 2 || len(nd.kids) != len(nd.keys) {
			return fmt.Errorf("an inner node of %d children and %d keys", len(nd.kids), len(nd.keys))
		}
		for i, kid := range nd.kids {
			if t.compare(nd.keys[i], kid.keys[0]) > 0 {
				return fmt.Errorf("a child begins below its bound")
			}
			if i+1 < len(nd.keys) && t.compare(kid.keys[len(kid.keys)-1], nd.keys[i+1]) >= 0 {
				return fmt.Errorf("a child ends above the next bound")
			}
			if err := walk(kid, level+1, false); err != nil {
				return err
			}
		}
		return nil
	}
	if t.root != nil {
		if err := walk(t.root, 0, true); err != nil {
			return err
		}
	}
	if n != t.size {
		return fmt.Errorf("%d entries, size says %d", n, t.size)
	}
	return nil
}

// TestTreeIsASortedMapAndOldVersionsNeverChange compares random edits with a plain map, and keeps every version to see that it stays as it was.
func TestTreeIsASortedMapAndOldVersionsNeverChange(t *testing.T) {
	for seed := range int64(20) {
		rng := rand.New(rand.NewSource(seed))
		tr := newTree[int, int](cmp.Compare[int])
		model := map[int]int{}
		type version struct {
			tr   tree[int, int]
			keys []int
			vals []int
		}
		var versions []version
		space := 1 + rng.Intn(3000)
		for range 60 {
			e := &edit{}
			next := tr
			for range rng.Intn(200) {
				k := rng.Intn(space)
				if rng.Intn(5) < 2+int(seed%3) {
					v := rng.Int()
					next.put(e, k, v)
					model[k] = v
				} else {
					_, had := model[k]
					if next.remove(e, k) != had {
						t.Fatalf("seed %d: remove %d", seed, k)
					}
					delete(model, k)
				}
			}
			tr = next
			if err := tr.check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			v := version{tr: tr}
			for k := range model {
				v.keys = append(v.keys, k)
			}
			slices.Sort(v.keys)
			for _, k := range v.keys {
				v.vals = append(v.vals, model[k])
			}
			versions = append(versions, v)
		}
		for i, v := range versions {
			var keys, vals []int
			for k, val := range v.tr.all() {
				keys, vals = append(keys, k), append(vals, val)
			}
			if !slices.Equal(keys, v.keys) || !slices.Equal(vals, v.vals) {
				t.Fatalf("seed %d: version %d changed after the fact", seed, i)
			}
			from := rng.Intn(space)
			at, _ := slices.BinarySearch(v.keys, from)
			var tail []int
			for k := range v.tr.from(from) {
				tail = append(tail, k)
			}
			if !slices.Equal(tail, v.keys[at:]) {
				t.Fatalf("seed %d: version %d from %d", seed, i, from)
			}
			for j, k := range v.keys {
				if got, ok := v.tr.get(k); !ok || got != v.vals[j] {
					t.Fatalf("seed %d: version %d get %d", seed, i, k)
				}
			}
			if _, ok := v.tr.get(space); ok {
				t.Fatal("found what is not there")
			}
		}
	}
}

func TestTreeIterationStopsWhenAsked(t *testing.T) {
	tr := newTree[int, int](cmp.Compare[int])
	e := &edit{}
	for i := range 1000 {
		tr.put(e, i, i)
	}
	n := 0
	for range tr.all() {
		if n++; n == 500 {
			break
		}
	}
	for range tr.from(700) {
		if n++; n == 600 {
			break
		}
	}
	if n != 600 {
		t.Fatal(n)
	}
}
