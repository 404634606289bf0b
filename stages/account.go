package stages

// Cost is what work of the pipeline took. A step's costs are shared among the requests whose rows
// it evaluates: experts by who picked them, time by rows. Everything is an integer, and every
// division gives its remainder to somebody, so that shares add up to the whole.
type Cost struct {
	// A pick is one expert of one row. Its expert was in memory (Hit), being read (Late), or
	// neither (Missed): it was read, or a host computed it, because of the pick, or it was in the
	// host's memory, where the device read it.
	Hit, Late, Missed int64
	// Bytes of experts' records: SlotBytes were in a slot from an earlier use; HostBytes came from
	// the host's memory to a device with memory of its own, DiskBytes from the disk. A record that
	// several requests need is divided among them. Where the device routes by itself the picks are
	// known at a step's end: of a step that fails before, nothing is counted.
	SlotBytes, HostBytes, DiskBytes int64
	// AheadBytes are those of HostBytes and DiskBytes that were read for a prediction.
	AheadBytes int64
	DeviceNS   int64 // the device worked
	DiskWaitNS int64 // the device had nothing to do, because experts were missing
}

// Add adds d to c.
func (c *Cost) Add(d *Cost) {
	c.Hit += d.Hit
	c.Late += d.Late
	c.Missed += d.Missed
	c.SlotBytes += d.SlotBytes
	c.HostBytes += d.HostBytes
	c.DiskBytes += d.DiskBytes
	c.AheadBytes += d.AheadBytes
	c.DeviceNS += d.DeviceNS
	c.DiskWaitNS += d.DiskWaitNS
}

// Since returns what was added since c was d.
func (c Cost) Since(d Cost) Cost {
	return Cost{
		Hit: c.Hit - d.Hit, Late: c.Late - d.Late, Missed: c.Missed - d.Missed,
		SlotBytes: c.SlotBytes - d.SlotBytes, HostBytes: c.HostBytes - d.HostBytes, DiskBytes: c.DiskBytes - d.DiskBytes,
		AheadBytes: c.AheadBytes - d.AheadBytes, DeviceNS: c.DeviceNS - d.DeviceNS, DiskWaitNS: c.DiskWaitNS - d.DiskWaitNS,
	}
}

// Account is what a request has been given, and what that cost.
type Account struct {
	Requests  int64 // that are accounted for; 1 of a single one
	Read      int64 // tokens evaluated and kept
	Reused    int64 // tokens that were taken over and not evaluated (ResumeSequence)
	Generated int64 // answers with logits: tokens that could be chosen
	QueueNS   int64 // from a request's arrival to its first step
	TotalNS   int64 // from a request's arrival to its answer
	Cost
}

// Add adds b to a.
func (a *Account) Add(b *Account) {
	a.Requests += b.Requests
	a.Read += b.Read
	a.Reused += b.Reused
	a.Generated += b.Generated
	a.QueueNS += b.QueueNS
	a.TotalNS += b.TotalNS
	a.Cost.Add(&b.Cost)
}

// Since returns what was added since a was b.
func (a Account) Since(b Account) Account {
	return Account{
		Requests: a.Requests - b.Requests, Read: a.Read - b.Read, Reused: a.Reused - b.Reused, Generated: a.Generated - b.Generated,
		QueueNS: a.QueueNS - b.QueueNS, TotalNS: a.TotalNS - b.TotalNS, Cost: a.Cost.Since(b.Cost),
	}
}

// AccountStats is who has paid for what. The costs of both add up to what the engine's other
// figures say.
type AccountStats struct {
	Requests Account // of all requests, those under way included
	// Nobody is what no request asked for: reads on a guess that was not used (yet), a warm start,
	// copies of states, and what was measured after a request's end.
	Nobody Cost
}

// Share returns what the part of a total from before to after gets of an amount, so that the parts
// of the whole add up to it.
func Share(amount int64, before, after, total int) int64 {
	return amount*int64(after)/int64(total) - amount*int64(before)/int64(total)
}

// Spell is how long the device and the disk have held up a step since the message before of this
// kind. The shell that delivers the message fills it in.
type Spell struct{ DeviceNS, DiskWaitNS int64 }
