package stages

// Times is where an engine's time went, in nanoseconds since it was opened. If a device's queue
// does not tell when it works (gpu.Watched), everything but ReadNS stays 0.
//
// ComputeNS and DiskWaitNS never run at once. So a step takes their sum and what is neither:
// choosing tokens, and the stages' own work. Of several devices (gpu.Split) ComputeNS is what all
// of them worked together, which may be more than the time that passed.
type Times struct {
	ComputeNS int64 `json:"compute_ns"` // the device worked
	OverlapNS int64 `json:"overlap_ns"` // of ComputeNS: experts were being read meanwhile
	// the device had nothing to do, because experts that a layer's router had picked were missing
	DiskWaitNS int64 `json:"disk_wait_ns"`
	// at least one expert was being read; not counted by the layer
	ReadNS int64 `json:"read_ns"`
}

// Add adds u to t.
func (t *Times) Add(u Times) {
	t.ComputeNS += u.ComputeNS
	t.OverlapNS += u.OverlapNS
	t.DiskWaitNS += u.DiskWaitNS
	t.ReadNS += u.ReadNS
}

// Since returns what was added since t was u.
func (t Times) Since(u Times) Times {
	return Times{t.ComputeNS - u.ComputeNS, t.OverlapNS - u.OverlapNS, t.DiskWaitNS - u.DiskWaitNS, t.ReadNS - u.ReadNS}
}
