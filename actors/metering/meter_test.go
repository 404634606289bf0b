package metering

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// watchedQueue is a queue that the test works off by hand.
type watchedQueue struct {
	watch  func(gpu.Progress)
	refuse error
}

func (q *watchedQueue) Watch(f func(gpu.Progress))               { q.watch = f }
func (q *watchedQueue) Submit(*gpu.Commands) (gpu.Ticket, error) { return nil, q.refuse }
func (q *watchedQueue) Close() error                             { return nil }

// TestMeter lets two layers of one step and the head pass, with a clock that the test turns.
func TestMeter(t *testing.T) {
	var clock int64
	m := New(2, func() int64 { return clock }, new(record.Log))
	dev := &watchedQueue{}
	q := m.Measured(dev, 1)
	step := func(layer int) stages.Step { return stages.Step{ID: 7, Layer: layer} }
	submit := func(layer int) {
		t.Helper()
		s := step(layer)
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: s})
		if _, err := q.Submit(new(gpu.Commands)); err != nil {
			t.Fatal(err)
		}
	}
	work := func(ns int64) {
		dev.watch(gpu.Progress{Working: true})
		clock += ns
		dev.watch(gpu.Progress{})
	}
	reads := func(n int) *stages.Outbox {
		return &stages.Outbox{Reads: []stages.ReadGroup{{Reads: make([]stages.Read, n)}}}
	}
	resident := func(layer int) *stages.Outbox {
		return &stages.Outbox{Sends: []stages.Send{{To: stages.Dispatch, Msg: &stages.WaveResident{Step: step(layer), Last: true}}}}
	}
	ended := func(n int, out *stages.Outbox) {
		m.After(stages.ExpertIO, &stages.ExpertsRead{Results: make([]stages.ReadResult, n)}, out)
	}

	clock += 1000 // nobody has asked for anything yet
	submit(0)
	work(10) // mixer of layer 0
	submit(0)
	m.After(stages.ExpertIO, &stages.LayerRouted{Step: step(0)}, reads(3))
	work(5) // its shared expert, while its experts are read
	clock += 20
	ended(2, &stages.Outbox{})
	clock += 30
	ended(1, resident(0))
	clock += 2 // dispatch is at work
	submit(0)
	submit(1)
	m.After(stages.ExpertIO, &stages.PrefetchExperts{Step: step(1)}, reads(1))
	work(40) // experts of layer 0, while one of layer 1 is read ahead
	work(15) // mixer of layer 1
	ended(1, &stages.Outbox{})
	m.After(stages.ExpertIO, &stages.LayerRouted{Step: step(1)}, resident(1)) // all there
	clock += 3
	submit(1)
	work(25)
	submit(2)
	work(50) // the head
	clock += 1000

	var s stages.Stats
	s.Layers = make([]stages.LayerStats, 2)
	m.After(stages.Combine, &stages.CollectStats{Stats: &s}, &stages.Outbox{})
	for _, c := range []struct {
		name      string
		got, want stages.Times
	}{
		{"layer 0", s.Layers[0].Times, stages.Times{ComputeNS: 55, OverlapNS: 45, DiskWaitNS: 50}},
		{"layer 1", s.Layers[1].Times, stages.Times{ComputeNS: 40, OverlapNS: 15}},
		{"all", s.Times, stages.Times{ComputeNS: 145, OverlapNS: 60, DiskWaitNS: 50, ReadNS: 5 + 20 + 30 + 40 + 15}},
		{"of", m.Of(2, 0), stages.Times{ComputeNS: 50}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

// TestMeterGivenUp holds that a step that is given up is waited for no longer, and that a refused
// submission leaves nothing.
func TestMeterGivenUp(t *testing.T) {
	var clock int64
	m := New(1, func() int64 { return clock }, new(record.Log))
	dev := &watchedQueue{refuse: errors.New("no")}
	q := m.Measured(dev, 1)
	if _, err := q.Submit(new(gpu.Commands)); err == nil || len(m.devices[0].submitted[0].all) != 0 {
		t.Errorf("refused: error %v, %d submissions are left", err, len(m.devices[0].submitted[0].all))
	}
	s := stages.Step{ID: 3}
	m.After(stages.ExpertIO, &stages.LayerRouted{Step: s}, &stages.Outbox{Reads: []stages.ReadGroup{{Reads: make([]stages.Read, 1)}}})
	clock += 10
	m.After(stages.ExpertIO, &stages.DrainStep{Step: s}, &stages.Outbox{})
	clock += 10
	m.After(stages.ExpertIO, &stages.ExpertsRead{Results: make([]stages.ReadResult, 1)}, &stages.Outbox{})
	clock += 10
	if got, want := m.Of(0, 0), (stages.Times{DiskWaitNS: 10}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if m.readNS != 20 || m.reads != 0 || len(m.waits) != 0 {
		t.Errorf("read for %d ns, want 20; %d reads and %d waits are left", m.readNS, m.reads, len(m.waits))
	}
}

// TestMeterAmid holds that the time of urgent work that runs amid other work is its own.
func TestMeterAmid(t *testing.T) {
	var clock int64
	m := New(2, func() int64 { return clock }, new(record.Log))
	dev := &watchedQueue{}
	q := m.Measured(dev, 1)
	for _, c := range []struct {
		step   stages.Step
		urgent bool
	}{{stages.Step{ID: 3}, false}, {stages.Step{ID: 3, Layer: 1}, false}, {stages.Step{ID: 4}, true}} {
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: c.step})
		if _, err := q.Submit(&gpu.Commands{Urgent: c.urgent}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		working, urgent bool
		ns              int64
	}{{true, false, 10}, {true, true, 20}, {false, true, 30}, {false, false, 40}, {true, false, 50}, {false, false, 60}} {
		dev.watch(gpu.Progress{Working: c.working, Urgent: c.urgent})
		clock += c.ns
	}
	if got, want := [2]stages.Spell{m.take(3), m.take(4)}, [2]stages.Spell{{DeviceNS: 10 + 30 + 50}, {DeviceNS: 20}}; got != want {
		t.Errorf("steps 3 and 4 took %+v, want %+v", got, want)
	}
	if got, want := m.Of(1, 0).ComputeNS, int64(50); got != want {
		t.Errorf("layer 1 took %d ns, want %d", got, want)
	}
}

// TestMeterUnwatched holds that nothing is guessed of a device that does not tell when it works.
func TestMeterUnwatched(t *testing.T) {
	var clock int64
	m := New(1, func() int64 { return clock }, new(record.Log))
	q := struct{ gpu.Queue }{}
	if m.Measured(q, 1) != gpu.Queue(q) {
		t.Error("the queue is not the same")
	}
	m.After(stages.ExpertIO, &stages.LayerRouted{Step: stages.Step{ID: 3}}, &stages.Outbox{Reads: []stages.ReadGroup{{Reads: make([]stages.Read, 1)}}})
	clock += 10
	s := stages.Stats{Layers: make([]stages.LayerStats, 1)}
	m.Report(&s)
	if want := (stages.Times{ReadNS: 10}); s.Times != want {
		t.Errorf("got %+v, want %+v", s.Times, want)
	}
}

// TestMeterNeverIdle holds that a device that always has work does not make the meter's memory
// grow.
func TestMeterNeverIdle(t *testing.T) {
	m := New(1, func() int64 { return 0 }, new(record.Log))
	m.Measured(&watchedQueue{}, 1)
	m.submit(new(gpu.Commands))
	for range 10000 {
		m.submit(new(gpu.Commands))
		m.work(gpu.Progress{Working: true})
		m.work(gpu.Progress{})
	}
	if n := cap(m.devices[0].submitted[0].all); n > 512 {
		t.Errorf("room for %d submissions where two wait at most", n)
	}
}

// BenchmarkMeter is what the meter costs a layer of a decoded token: three submissions, and a
// routing whose experts are there.
func BenchmarkMeter(b *testing.B) {
	epoch := time.Now()
	m := New(48, func() int64 { return int64(time.Since(epoch)) }, record.NewLog(record.DefaultBytes))
	m.Measured(&watchedQueue{}, 1)
	s := stages.Step{ID: 1, Layer: 3}
	routed := &stages.LayerRouted{Step: s}
	out := &stages.Outbox{Sends: []stages.Send{{To: stages.Dispatch, Msg: &stages.WaveResident{Step: s, Last: true}}}}
	read := &stages.ExpertsRead{Step: s, Results: make([]stages.ReadResult, 2)}
	b.ReportAllocs()
	for b.Loop() {
		for range 3 {
			m.Before(stages.Dispatch, &stages.BeginLayer{Step: s})
			m.submit(new(gpu.Commands))
			m.work(gpu.Progress{Working: true})
			m.work(gpu.Progress{})
		}
		m.After(stages.ExpertIO, routed, out)
		m.After(stages.ExpertIO, read, out)
		m.reads = 0
	}
}

// TestMeterLayers lets the device mark the ends of three layers of one submission, and wants a
// record of each, by the device's clock. Where the marks say nothing, or other work was amid them,
// there is one record.
func TestMeterLayers(t *testing.T) {
	for _, c := range []struct {
		name  string
		marks [3]int64
		amid  bool // urgent work, for 5 ns
		want  []record.Submission
	}{
		{"marked", [3]int64{10, 30, 58}, false, []record.Submission{
			{Layer: 1, BeganNS: 100, EndedNS: 150, DeviceNS: 10}, {Layer: 2, BeganNS: 150, EndedNS: 170, DeviceNS: 20}, {Layer: 4, BeganNS: 170, EndedNS: 200, DeviceNS: 30},
		}},
		{"at once", [3]int64{1, 1, 60}, false, []record.Submission{
			{Layer: 1, BeganNS: 100, EndedNS: 141, DeviceNS: 1}, {Layer: 2, BeganNS: 141, EndedNS: 141}, {Layer: 4, BeganNS: 141, EndedNS: 200, DeviceNS: 59},
		}},
		{"no clock", [3]int64{}, false, []record.Submission{{Layer: 1, More: 3, BeganNS: 100, EndedNS: 200, DeviceNS: 60}}},
		{"failed amid it", [3]int64{10, 0, 0}, false, []record.Submission{{Layer: 1, More: 3, BeganNS: 100, EndedNS: 200, DeviceNS: 60}}},
		{"too long", [3]int64{10, 20, 61}, false, []record.Submission{{Layer: 1, More: 3, BeganNS: 100, EndedNS: 200, DeviceNS: 60}}},
		{"urgent work amid it", [3]int64{10, 30, 58}, true, []record.Submission{{Layer: 1, More: 3, BeganNS: 100, EndedNS: 200, DeviceNS: 60, PausedNS: 5}}},
	} {
		clock, log := int64(90), record.NewLog(1<<16)
		m := New(5, func() int64 { return clock }, log)
		dev := &watchedQueue{}
		q := m.Measured(dev, 1)
		var cmd gpu.Commands
		for _, layer := range []int32{1, 2, 4} { // a probe leaves out one
			gpu.Encode(&cmd, gpu.Mark{Tag: layer})
		}
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: stages.Step{ID: 7, Layer: 1}, More: 3})
		if _, err := q.Submit(&cmd); err != nil {
			t.Fatal(err)
		}
		clock = 100
		dev.watch(gpu.Progress{Working: true})
		if c.amid {
			if _, err := q.Submit(&gpu.Commands{Urgent: true}); err != nil {
				t.Fatal(err)
			}
			dev.watch(gpu.Progress{Working: true, Urgent: true})
			clock = 105
			dev.watch(gpu.Progress{Urgent: true, DeviceNS: 5})
		}
		clock = 200
		for i, mark := range cmd.Marks() {
			mark.NS = c.marks[i]
		}
		dev.watch(gpu.Progress{DeviceNS: 60})
		var got []record.Submission
		for _, s := range log.Recording().Submissions {
			if s.Urgent == 0 {
				got = append(got, s)
			}
		}
		for i := range c.want {
			c.want[i].Step, c.want[i].Wave, c.want[i].SubmittedNS = 7, -1, 90
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the records are\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// Work that is told late to be over has taken its time, and that before which it was over begins
// then.
func TestMeterLate(t *testing.T) {
	clock, log := int64(100), record.NewLog(1<<16)
	m := New(2, func() int64 { return clock }, log)
	dev := &watchedQueue{}
	q := m.Measured(dev, 1)
	submit := func(layer int) {
		t.Helper()
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: stages.Step{ID: 7, Layer: layer}})
		if _, err := q.Submit(new(gpu.Commands)); err != nil {
			t.Fatal(err)
		}
	}
	submit(0)
	dev.watch(gpu.Progress{Working: true})
	submit(1)
	clock = 150
	m.After(stages.ExpertIO, &stages.PrefetchExperts{}, &stages.Outbox{Reads: []stages.ReadGroup{{Reads: make([]stages.Read, 1)}}})
	clock = 2000 // a stage was at work, and a read went on
	dev.watch(gpu.Progress{DeviceNS: 60, LateNS: 1840})
	dev.watch(gpu.Progress{Working: true, LateNS: 1840})
	dev.watch(gpu.Progress{DeviceNS: 25, LateNS: 1815})
	clock = 2100
	submit(1) // nothing was left: it begins when the device says so
	clock = 2104
	dev.watch(gpu.Progress{Working: true})
	clock = 2134
	dev.watch(gpu.Progress{DeviceNS: 30})
	var got [][3]int64
	for _, s := range log.Recording().Submissions {
		got = append(got, [3]int64{s.BeganNS, s.EndedNS, s.DeviceNS})
	}
	if want := [][3]int64{{100, 160, 60}, {160, 185, 25}, {2104, 2134, 30}}; !slices.Equal(got, want) {
		t.Errorf("submissions %v, want %v", got, want)
	}
	if first, second := m.Of(0, 0).ComputeNS, m.Of(1, 0).ComputeNS; first != 60 || second != 25+30 {
		t.Errorf("the layers took %d and %d ns, want 60 and 55", first, second)
	}
	if over := m.Of(0, 0).OverlapNS; over > 60 {
		t.Errorf("reads went on for %d ns beside work of 60", over)
	}
	if got, want := m.take(7), (stages.Spell{DeviceNS: 60 + 25 + 30}); got != want {
		t.Errorf("the step took %+v, want %+v", got, want)
	}
}

// TestMeterParts has two parts of a device work side by side. Each has its own account, and what
// moves from the first to the second begins there when the first is done with it.
func TestMeterParts(t *testing.T) {
	clock, log := int64(0), record.NewLog(1<<16)
	m := New(2, func() int64 { return clock }, log)
	dev := &watchedQueue{}
	q := m.Measured(dev, 2)
	submit := func(step stages.StepID, layer int, moves bool) {
		t.Helper()
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: stages.Step{ID: step, Layer: layer}})
		c := &gpu.Commands{Part: layer}
		if moves {
			c.Moves = []gpu.Move{{}}
		}
		if _, err := q.Submit(c); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(at int64, part int, working bool, ns int64) {
		clock = at
		dev.watch(gpu.Progress{Part: part, Working: working, DeviceNS: ns})
	}
	submit(7, 0, false)
	tell(0, 0, true, 0)
	submit(7, 1, true)
	tell(0, 1, true, 0) // its queue says so, and waits
	submit(8, 0, false)
	submit(8, 1, true)
	tell(100, 0, false, 100)
	tell(100, 0, true, 0)
	tell(180, 1, false, 75) // 5 are the move
	tell(180, 1, true, 0)   // waits for the first part
	tell(200, 0, false, 100)
	tell(270, 1, false, 65)
	submit(9, 1, false) // needs nothing of the first part
	tell(300, 1, true, 0)
	tell(310, 1, false, 10)
	if _, err := q.Submit(&gpu.Commands{Part: 2}); err != nil {
		t.Error(err)
	}
	var got [][4]int64
	for _, s := range log.Recording().Submissions {
		got = append(got, [4]int64{int64(s.Step), int64(s.Device), s.BeganNS, s.EndedNS})
	}
	if want := [][4]int64{{7, 0, 0, 100}, {7, 1, 100, 180}, {8, 0, 100, 200}, {8, 1, 200, 270}, {9, 1, 300, 310}}; !slices.Equal(got, want) {
		t.Errorf("the records are %v, want %v", got, want)
	}
	if first, second := m.Of(0, 0).ComputeNS, m.Of(1, 0).ComputeNS; first != 200 || second != 80+70+10 {
		t.Errorf("the layers took %d and %d ns, want 200 and 160", first, second)
	}
	if got, want := m.take(8), (stages.Spell{DeviceNS: 100 + 70}); got != want {
		t.Errorf("step 8 took %+v, want %+v", got, want)
	}
}

// TestMeterToldLater has the first part's end told after that of what needed it.
func TestMeterToldLater(t *testing.T) {
	clock, log := int64(0), record.NewLog(1<<16)
	m := New(2, func() int64 { return clock }, log)
	dev := &watchedQueue{}
	q := m.Measured(dev, 2)
	for part := range 2 {
		m.Before(stages.Dispatch, &stages.BeginLayer{Step: stages.Step{ID: 7, Layer: part}})
		c := &gpu.Commands{Part: part}
		if part > 0 {
			c.Moves = []gpu.Move{{}}
		}
		if _, err := q.Submit(c); err != nil {
			t.Fatal(err)
		}
		dev.watch(gpu.Progress{Part: part, Working: true})
	}
	clock = 500
	dev.watch(gpu.Progress{Part: 1, DeviceNS: 40, LateNS: 300})
	dev.watch(gpu.Progress{DeviceNS: 150, LateNS: 350})
	var got [][3]int64
	for _, s := range log.Recording().Submissions {
		got = append(got, [3]int64{int64(s.Device), s.BeganNS, s.EndedNS})
	}
	if want := [][3]int64{{1, 160, 200}, {0, 0, 150}}; !slices.Equal(got, want) {
		t.Errorf("the records are %v, want %v", got, want)
	}
	if first, second := m.Of(0, 0).ComputeNS, m.Of(1, 0).ComputeNS; first != 150 || second != 40 {
		t.Errorf("the layers took %d and %d ns, want 150 and 40", first, second)
	}
}
