package config

// Nearest returns the known name closest to a name that is not known, "" when none is close enough to be what was meant.
func (t *Table) Nearest(name string) string { return Nearest(name, t) }

// Nearest is that of several tables; of names that are equally close the first.
func Nearest(name string, tables ...*Table) string {
	best, at := "", len(name)/3+1
	for _, t := range tables {
		for _, k := range t.keys {
			if k.Internal {
				continue
			}
			if d := distance(name, k.Name, at); d < at {
				best, at = k.Name, d
			}
		}
	}
	return best
}

// distance is the number of single-character edits (a swap of neighbours counts as one) between two names, or limit when it is no smaller.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > nameMax {
		return limit
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return min(old[len(b)], limit)
}

// nameMax bounds the work spent on a name that is not known.
const nameMax = 256
