package stages

import "slices"

// Since returns what was counted after earlier, which is nil, or figures of the same engine: the
// difference of every count and time. What describes a moment stays as it is in s: the numbers of
// slots, where experts are, reads under way, pages, kept states and who waits for memory, memory,
// the high-water marks, PrefetchHeld and PrefetchPaused. The result shares no memory with s, and is
// what resets the figures: keep it, or keep s for the next call.
func (s *Stats) Since(earlier *Stats) *Stats {
	if earlier == nil {
		earlier = new(Stats)
	}
	d := *s
	d.Steps -= earlier.Steps
	d.Rows -= earlier.Rows
	d.FailedSteps -= earlier.FailedSteps
	d.ReadErrors -= earlier.ReadErrors
	d.WavesSubmitted -= earlier.WavesSubmitted
	d.States = s.States.since(&earlier.States)
	d.Admission.Waited -= earlier.Admission.Waited
	d.Admission.Granted -= earlier.Admission.Granted
	d.Admission.TurnedAway -= earlier.Admission.TurnedAway
	d.Reads = s.Reads.since(&earlier.Reads)
	d.Tracing.Steps -= earlier.Tracing.Steps
	d.Tracing.StepsLost -= earlier.Tracing.StepsLost
	d.Tracing.RecordsLost -= earlier.Tracing.RecordsLost
	d.Tracing.CallsLost -= earlier.Tracing.CallsLost
	d.Memory.Shrunk -= earlier.Memory.Shrunk
	d.Memory.Grown -= earlier.Memory.Grown
	d.Times = s.Times.Since(earlier.Times)
	d.Accounts = AccountStats{
		Requests: s.Accounts.Requests.Since(earlier.Accounts.Requests), Nobody: s.Accounts.Nobody.Since(earlier.Accounts.Nobody),
	}
	d.Hosts = append([]HostStats(nil), s.Hosts...)
	for i := range s.Hosts {
		before := new(HostStats)
		if at := slices.IndexFunc(earlier.Hosts, func(h HostStats) bool { return h.Addr == s.Hosts[i].Addr }); at >= 0 {
			before = &earlier.Hosts[at] // a place may have become another host's
		}
		d.Hosts[i] = s.Hosts[i].since(before)
	}
	d.Layers = make([]LayerStats, len(s.Layers))
	for i := range s.Layers {
		before := new(LayerStats)
		if i < len(earlier.Layers) {
			before = &earlier.Layers[i]
		}
		d.Layers[i] = s.Layers[i].since(before)
	}
	return &d
}

func (s *HostStats) since(earlier *HostStats) HostStats {
	d := *s
	d.Asks -= earlier.Asks
	d.Hedges -= earlier.Hedges
	d.Failed -= earlier.Failed
	d.Uses -= earlier.Uses
	d.BytesOut -= earlier.BytesOut
	d.BytesIn -= earlier.BytesIn
	d.Answered -= earlier.Answered
	d.Waited -= earlier.Waited
	d.Read -= earlier.Read
	d.Computed -= earlier.Computed
	return d
}

func (s *LayerStats) since(earlier *LayerStats) LayerStats {
	d := *s
	d.Hits -= earlier.Hits
	d.Misses -= earlier.Misses
	d.Away -= earlier.Away
	d.BytesRead -= earlier.BytesRead
	d.BytesAhead -= earlier.BytesAhead
	d.BytesWarm -= earlier.BytesWarm
	d.Evictions -= earlier.Evictions
	d.PrefetchIssued -= earlier.PrefetchIssued
	d.PrefetchHit -= earlier.PrefetchHit
	d.PrefetchLate -= earlier.PrefetchLate
	d.PrefetchWasted -= earlier.PrefetchWasted
	d.PrefetchDropped -= earlier.PrefetchDropped
	d.PrefetchDeclined -= earlier.PrefetchDeclined
	d.PrefetchSkipped -= earlier.PrefetchSkipped
	d.PrefetchPauses -= earlier.PrefetchPauses
	d.Picks -= earlier.Picks
	d.SamePicks -= earlier.SamePicks
	d.AheadPicks -= earlier.AheadPicks
	d.AheadHits -= earlier.AheadHits
	d.TwoAheadPicks -= earlier.TwoAheadPicks
	d.TwoAheadHits -= earlier.TwoAheadHits
	d.Times = s.Times.Since(earlier.Times)
	d.Uses, d.Places = append([]int64(nil), s.Uses...), append([]Place(nil), s.Places...)
	for e := range d.Uses {
		if e < len(earlier.Uses) {
			d.Uses[e] -= earlier.Uses[e]
		}
	}
	return d
}

func (s *ReadStats) since(earlier *ReadStats) ReadStats {
	d := *s
	d.Ended -= earlier.Ended
	d.Speculative -= earlier.Speculative
	d.Hurried -= earlier.Hurried
	d.Bytes -= earlier.Bytes
	d.FromHost -= earlier.FromHost
	d.Uploaded -= earlier.Uploaded
	d.Failed -= earlier.Failed
	d.Retried -= earlier.Retried
	d.Overdue -= earlier.Overdue
	d.Corrupt -= earlier.Corrupt
	d.WorkerTime -= earlier.WorkerTime
	d.BusyTime -= earlier.BusyTime
	d.MajorFaults -= earlier.MajorFaults
	return d
}

func (s *StateStats) since(earlier *StateStats) StateStats {
	d := *s
	d.Remembered -= earlier.Remembered
	d.Evicted -= earlier.Evicted
	d.Resumed -= earlier.Resumed
	d.Reused -= earlier.Reused
	d.Parkings -= earlier.Parkings
	d.Returns -= earlier.Returns
	d.Stored -= earlier.Stored
	d.Recalled -= earlier.Recalled
	return d
}
