package forecast

// slowestShare is the least share of the memory's bandwidth at which a token's weights are
// multiplied: 58 % to 85 % were measured for models of real size, with 1 to 16 threads of three
// kinds of processor (docs/experiments.md).
const slowestShare = 0.55

// What decides the speed at best.
const (
	BoundMemory = "memory"
	BoundDisk   = "disk"
)

// Forecast says how fast one text should decode. At best the slower of memory and disk decides, and
// all other work is hidden behind it. At worst a token reads first and then computes, at 55 % of
// the bandwidth.
type Forecast struct {
	TokensPerSecond float64 `json:"tokens_per_second"`     // at best
	Low             float64 `json:"tokens_per_second_low"` // at worst
	Bound           string  `json:"bound"`                 // memory or disk
	// of a token: the weights that it touches, at the memory's bandwidth
	ComputeSeconds float64 `json:"compute_seconds"`
	// of a token: the experts that are not kept, at the disk's bandwidth
	DiskSeconds     float64 `json:"disk_seconds"`
	KeptRate        float64 `json:"expert_kept_rate"`
	KeptRateFrom    string  `json:"expert_kept_rate_from"` // how that is known
	MemoryBandwidth float64 `json:"memory_bandwidth"`      // bytes a second
	DiskBandwidth   float64 `json:"disk_bandwidth"`        // 0 if nothing is read
}

// Needs are the bytes of weights that a token needs.
type Needs struct {
	Touched int64 // all of them
	Experts int64 // of Touched
}

// Of returns the forecast for bandwidths in bytes a second; nil if something that matters is
// unknown, which is 0 for a bandwidth.
func Of(n Needs, kept Kept, memory, disk float64) *Forecast {
	f := &Forecast{KeptRate: kept.Rate, KeptRateFrom: kept.From, MemoryBandwidth: memory, Bound: BoundMemory}
	if kept.From == "" || memory <= 0 || kept.Rate < 1 && disk <= 0 {
		return nil
	}
	f.ComputeSeconds = float64(n.Touched) / memory
	if kept.Rate < 1 {
		f.DiskBandwidth = disk
		f.DiskSeconds = (1 - kept.Rate) * float64(n.Experts) / disk
	}
	if f.DiskSeconds > f.ComputeSeconds {
		f.Bound = BoundDisk
	}
	f.TokensPerSecond = 1 / max(f.DiskSeconds, f.ComputeSeconds, 1e-9)
	f.Low = 1 / max(f.DiskSeconds+f.ComputeSeconds/slowestShare, 1e-9)
	return f
}
