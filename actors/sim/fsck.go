package sim

// inspectDisk stops the broker in order and reads what it leaves.
func (r *run) inspectDisk() {}
