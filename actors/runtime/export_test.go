package runtime

// Idle reports whether the actor has started and has nothing to do.
func Idle(r *Ref) bool {
	m := r.mb
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started && !m.claimed && m.count == 0
}
