package forecast

import (
	"math/rand/v2"
)

// Owner is one of the machines that compute experts: this one, or a host.
type Owner struct {
	Share      float64 // of all experts
	UseSeconds float64 // to compute an expert for one row
	// of the network to it; zero for this machine
	RoundTrip float64 // seconds
	Out, In   float64 // bytes a second, there and back
	// Extra is what an ask takes, in seconds, beyond the network and what the host does with it.
	Extra float64
}

// SplitNeeds is what a token needs of machines that compute its experts together.
type SplitNeeds struct {
	Layers, Picks int     // layers with experts, and the experts of a row in each
	OutBytes      int     // of a row, to a host
	RowBytes      int     // of an output, back
	Sums          bool    // an owner's outputs come back as one
	DenseSeconds  float64 // of a token, for all but experts
	ReadSeconds   float64 // to read one expert from a disk
	Kept          float64 // the share of uses that find their expert in some owner's memory
}

// Split says how fast one text should decode with experts on several machines. Each layer waits for
// the slowest of them; see SplitOf.
type Split struct {
	TokensPerSecond float64 `json:"tokens_per_second"`     // at best
	Low             float64 `json:"tokens_per_second_low"` // at worst
	Bound           string  `json:"bound"`                 // memory, disk, network or hosts
	KeptRate        float64 `json:"expert_kept_rate"`
	KeptRateFrom    string  `json:"expert_kept_rate_from"`
	// of a token, at best: what is computed or read here, and what layers wait for beyond that: the
	// network, the hosts, and disks of any machine
	HereSeconds    float64 `json:"here_seconds"`
	NetworkSeconds float64 `json:"network_seconds"`
	HostsSeconds   float64 `json:"hosts_seconds"`
	DiskSeconds    float64 `json:"disk_seconds"`
}

// What else decides the speed of a token with hosts.
const (
	BoundNetwork = "network"
	BoundHosts   = "hosts"
)

// layersDrawn is how many layers a Split is the mean of. The mean of the most picks of an owner is
// known to half a percent then.
const layersDrawn = 4000

// parts is where the time of a layer goes, in seconds.
type parts struct{ here, network, hosts, disk float64 }

func (p *parts) sum() float64 { return p.here + p.network + p.hosts + p.disk }

func (p *parts) add(q parts) {
	p.here, p.network, p.hosts, p.disk = p.here+q.here, p.network+q.network, p.hosts+q.hosts, p.disk+q.disk
}

// SplitOf returns the forecast for owners, the first of which is this machine. In a layer an owner
// has its picks one after the other, and all owners work at once: a host takes a round trip, the
// row's bytes there, those of a row for each pick back, and the computing. At best it reads while
// it computes; at worst it computes what it has read, the network carries nothing meanwhile, an ask
// takes what was measured of asks beyond all that, and what is computed here has 55 % of the
// memory's bandwidth, as in Of.
func SplitOf(n SplitNeeds, owners []Owner) *Split {
	r := rand.New(rand.NewPCG(1, 1))
	var best, worst parts
	picks, misses := make([]int, len(owners)), make([]int, len(owners))
	for range layersDrawn {
		clear(picks)
		clear(misses)
		for range n.Picks {
			o := drawOwner(r, owners)
			picks[o]++
			if r.Float64() >= n.Kept {
				misses[o]++
			}
		}
		best.add(layerOf(&n, owners, picks, misses, false))
		worst.add(layerOf(&n, owners, picks, misses, true))
	}
	each := float64(n.Layers) / layersDrawn
	s := &Split{
		KeptRate: n.Kept, HereSeconds: n.DenseSeconds + each*best.here, NetworkSeconds: each * best.network, HostsSeconds: each * best.hosts, DiskSeconds: each * best.disk,
	}
	s.TokensPerSecond = 1 / max(n.DenseSeconds+each*best.sum(), 1e-9)
	s.Low = 1 / max(n.DenseSeconds/slowestShare+each*worst.sum(), 1e-9)
	s.Bound = BoundMemory
	most := s.HereSeconds
	for _, b := range []struct {
		name    string
		seconds float64
	}{{BoundDisk, s.DiskSeconds}, {BoundNetwork, s.NetworkSeconds}, {BoundHosts, s.HostsSeconds}} {
		if b.seconds > most {
			s.Bound, most = b.name, b.seconds
		}
	}
	return s
}

// drawOwner draws whose an expert is.
func drawOwner(r *rand.Rand, owners []Owner) int {
	x := r.Float64()
	for i := range owners {
		if x -= owners[i].Share; x < 0 {
			return i
		}
	}
	return len(owners) - 1
}

// layerOf returns the time of a layer in which owners have so many picks and misses each: that of
// the slowest. What goes over the network also does so through this machine's own link, which is as
// fast as the fastest network to a host. At worst the link carries nothing while the slowest
// computes.
func layerOf(n *SplitNeeds, owners []Owner, picks, misses []int, worst bool) (slowest parts) {
	var trip, extra, fastOut, fastIn, out, in float64
	row, there := float64(n.RowBytes), float64(n.OutBytes)
	for i := range owners {
		if picks[i] == 0 {
			continue
		}
		o := &owners[i]
		p := workOf(o, float64(picks[i]), float64(misses[i])*n.ReadSeconds, i == 0, worst)
		if i > 0 {
			back := float64(picks[i]) * row
			if n.Sums {
				back = row
			}
			if !worst {
				p.network = o.RoundTrip + there/o.Out + back/o.In
			}
			trip, extra, fastOut, fastIn = max(trip, o.RoundTrip), max(extra, o.Extra), max(fastOut, o.Out), max(fastIn, o.In)
			out, in = out+there, in+back
		}
		if p.sum() > slowest.sum() {
			slowest = p
		}
	}
	if out == 0 {
		return slowest
	}
	link := trip + out/fastOut + in/fastIn
	switch {
	case worst:
		slowest.network = link + extra
	case link > slowest.sum():
		slowest = parts{network: link}
	}
	return slowest
}

// workOf returns what an owner computes and waits for its disk.
func workOf(o *Owner, picks, read float64, here, worst bool) (p parts) {
	compute := picks * o.UseSeconds
	p.disk = max(0, read-compute)
	if worst {
		p.disk = read
	}
	switch {
	case !here:
		p.hosts = compute
	case worst:
		p.here = compute / slowestShare
	default:
		p.here = compute
	}
	return p
}

// BreakEven returns from how many rows on an expert is read here in less time than its rows take to
// a host and back.
func BreakEven(n *SplitNeeds, out, in float64) float64 {
	return n.ReadSeconds / (float64(n.OutBytes)/out + float64(n.RowBytes)/in)
}
