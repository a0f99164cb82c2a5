package sim

import "fmt"

// Shrink looks for a smaller plan that breaks the same invariant: faults, clients and time are taken out as long as it
// still does. It returns the names of what is left out, as Plan.Without takes them. runs bounds the runs it makes.
func Shrink(p *Plan, invariant string, runs int) []string {
	var gone []string
	broken := func(without []string) bool {
		if runs == 0 {
			return false
		}
		runs--
		o := Run(p.Without(without...), Options{})
		return o.Failure != nil && o.Failure.Invariant == invariant
	}
	// Everything of one kind at once, then halves of it, then one by one.
	for _, names := range [][]string{faultNames(p), clientNames(p)} {
		for size := len(names); size > 0; size /= 2 {
			for i := 0; i < len(names); {
				part := names[i:min(i+size, len(names))]
				if try := append(append([]string(nil), gone...), part...); broken(try) {
					gone = try
					names = append(append([]string(nil), names[:i]...), names[i+len(part):]...)
					continue
				}
				i += size
			}
		}
	}
	for _, shorter := range []string{"quarter", "half"} {
		if try := append(append([]string(nil), gone...), shorter); broken(try) {
			return try
		}
	}
	return gone
}

func faultNames(p *Plan) []string {
	var names []string
	for i := range p.Faults {
		names = append(names, fmt.Sprint("f", p.Faults[i].Number))
	}
	return names
}

func clientNames(p *Plan) []string {
	var names []string
	for i := range p.Clients {
		if p.Clients[i].Number > 0 { // the first one creates the topics
			names = append(names, fmt.Sprint("c", p.Clients[i].Number))
		}
	}
	return names
}
