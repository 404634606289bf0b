package readpool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// simDisk is a disk in simulated time whose reads share a rate that depends on how many there are.
type simDisk struct {
	d       *depth
	rate    func(n int, now time.Duration) float64 // bytes a second of n reads together
	noise   float64                                // of a read's size, as a power of e
	rng     *rand.Rand
	now     time.Duration
	running []float64 // bytes that are left
	levels  map[int]time.Duration
	changes []int // the present levels, one after the other
}

const simRecord = 2 << 20

// burst has n reads follow each other as the depth lets them.
func (s *simDisk) burst(n int) {
	at := func() time.Time { return time.Unix(0, 0).Add(s.now) }
	for n > 0 || len(s.running) > 0 {
		for n > 0 && len(s.running) < s.d.most() {
			n--
			s.running = append(s.running, simRecord*math.Exp(s.noise*s.rng.NormFloat64()))
			s.d.begun(at(), len(s.running))
		}
		each := s.rate(len(s.running), s.now) / float64(len(s.running))
		first := slices.Min(s.running)
		took := time.Duration(first / each * 1e9)
		s.now += took
		s.levels[s.d.levels[s.d.at]] += took
		for i := range s.running {
			s.running[i] -= first
		}
		s.running = slices.DeleteFunc(s.running, func(left float64) bool { return left <= 0 })
		s.d.ended(at(), simRecord, len(s.running))
		if l := s.d.levels[s.d.at]; len(s.changes) == 0 || s.changes[len(s.changes)-1] != l {
			s.changes = append(s.changes, l)
		}
	}
}

// rates is a disk that does not change: the rate of 1, 2, 3 and 4 reads, GB/s.
func rates(of ...float64) func(int, time.Duration) float64 {
	return func(n int, _ time.Duration) float64 { return 1e9 * of[n-1] }
}

// TestDepth reads from disks with different curves. Where another number of reads is clearly faster
// the pool comes to it soon and stays. Where none is, it stays as it is, however the times scatter,
// but for a tenth of the seeds: of many trials of what is alike, chance wins one. It never goes to
// and fro.
func TestDepth(t *testing.T) {
	for _, c := range []struct {
		name    string
		rate    func(int, time.Duration) float64
		burst   int // reads asked for at once
		want    int // the number of reads at once; 0: any
		changes int // at most
	}{
		{"one is best", rates(1.5, 1.2, 1.1, 1), 8, 1, 2},
		{"one is best, reads come in twos", rates(1.5, 1.1, 1, 1), 2, 1, 2},
		{"two are best", rates(0.8, 1.5, 1.1, 1), 8, 2, 2},
		{"four are best", rates(0.5, 0.9, 1.2, 1.5), 8, 4, 1},
		{"all are alike", rates(1, 1, 1, 1), 8, 4, 1},
		{"fewer are hardly better", rates(1.05, 1.04, 1.02, 1), 8, 0, 2},
		{"reads come alone", rates(1.5, 1.2, 1.1, 1), 1, 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			strays := 0
			for seed := range uint64(20) {
				s := &simDisk{d: newDepth(4, true), rate: c.rate, noise: 0.3, rng: rand.New(rand.NewPCG(seed, 1)), levels: map[int]time.Duration{}}
				for range 20_000 / c.burst {
					s.burst(c.burst)
				}
				share := float64(s.levels[c.want]) / float64(s.now)
				stray := c.want > 0 && (s.d.levels[s.d.at] != c.want || share < 0.9)
				if stray {
					strays++
				}
				if got := s.d.levels[s.d.at]; len(s.changes)-1 > c.changes || strays > 2 && stray {
					t.Errorf("seed %d: %d reads at once in the end, %d for %.0f %% of the time, changes %v; want %d", seed, got, c.want, 100*share, s.changes, c.want)
				}
			}
		})
	}
}

// TestDepthFollows changes the disk's curve every 40 s. The pool follows, once each time.
func TestDepthFollows(t *testing.T) {
	const phase, phases = 40 * time.Second, 6
	rate := func(n int, now time.Duration) float64 {
		if now/phase%2 == 0 {
			return rates(1.5, 1.2, 1.1, 1)(n, 0)
		}
		return rates(0.5, 0.9, 1.2, 1.5)(n, 0)
	}
	s := &simDisk{d: newDepth(4, true), rate: rate, noise: 0.3, rng: rand.New(rand.NewPCG(1, 1)), levels: map[int]time.Duration{}}
	for i := range time.Duration(phases) {
		for s.now < (i+1)*phase {
			s.burst(8)
		}
		if got, want := s.d.levels[s.d.at], map[bool]int{true: 1, false: 4}[i%2 == 0]; got != want {
			t.Errorf("phase %d ends with %d reads at once, want %d", i, got, want)
		}
	}
	if n := len(s.changes) - 1; n > 2*phases {
		t.Errorf("%d changes in %d phases: %v", n, phases, s.changes)
	}
}

// TestFewerReaders has a pool read from a disk that is faster with one read at a time. It finds
// that out. If then a read does not end all workers read once others have waited for a second, also
// if those come later.
func TestFewerReaders(t *testing.T) {
	for _, fewer := range []bool{true, false} {
		for _, later := range []time.Duration{0, 3 * time.Second} {
			testFewerReaders(t, fewer, later)
		}
	}
}

func testFewerReaders(t *testing.T, fewer bool, later time.Duration) {
	t.Run(fmt.Sprintf("fewer=%v/later=%v", fewer, later), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var p *Pool
			stuck := make(chan bool)
			p = New(sourceFunc(func(layer, _ int, _ []byte) error {
				if layer == 1 {
					<-stuck
				}
				n := time.Duration(p.Stats().Running)
				time.Sleep(n * (time.Millisecond + (n-1)*200*time.Microsecond))
				return nil
			}), Config{Workers: 4, Fewer: fewer})
			for range 300 {
				readAll(p, requests(0, 8), Demand)
			}
			want := map[bool]int{true: 1, false: 4}[fewer]
			if got := p.Stats().AtOnce; got != want {
				t.Errorf("%d reads at once, want %d", got, want)
			}
			p.Submit(requests(1, 1), Demand, func([]End) {})
			time.Sleep(later)
			began := time.Now()
			if readAll(p, requests(0, 3), Demand); time.Since(began) > 2*time.Second {
				t.Errorf("reads took %v beside one that does not end", time.Since(began))
			}
			close(stuck)
			p.Close()
		})
	})
}
