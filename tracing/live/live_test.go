package live

import (
	"math"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// made is a log of a test's, and a view of it. Its engine began ten seconds ago.
func made() (*record.Log, *View, int64) {
	l := record.NewLog(4 << 20)
	m := record.Meta{
		Epoch: time.Now().Add(-10 * time.Second), Stages: []string{"sequencer", "router"}, Messages: []string{"other", "LayerRouted"},
		Model: record.Model{Layers: 2, Experts: 4, Routed: []bool{true, true}, LayerKinds: []string{"a", "b"}},
	}
	v := New(l, m)
	return l, v, v.began
}

// Facts about an expert come from several tables; the latest holds, in whatever order they are
// read.
func TestCells(t *testing.T) {
	for name, tc := range map[string]struct {
		add  func(l *record.Log, at int64)
		want Cell
	}{
		"nothing": {func(*record.Log, int64) {}, OnDisk},
		"wanted": {func(l *record.Log, at int64) {
			l.Uses.Add(record.Use{AtNS: at + 1, Expert: 2, Rows: 1, Found: record.Missing})
		}, Reading | Picked},
		"guessed": {func(l *record.Log, at int64) { l.Guesses.Add(record.Guess{AtNS: at + 1, Expert: 2}) }, Reading | Guessed},
		"declined": {func(l *record.Log, at int64) {
			l.Guesses.Add(record.Guess{AtNS: at + 1, Expert: 2, Verdict: record.Declined})
		}, OnDisk},
		"read on a guess": {func(l *record.Log, at int64) {
			l.Guesses.Add(record.Guess{AtNS: at + 1, Expert: 2})
			l.Reads.Add(record.Read{AskedNS: at + 1, BeganNS: at + 2, EndedNS: at + 3, PlacedNS: at + 3, Hint: 1, Expert: 2})
		}, InSlot | Guessed},
		"and used": {func(l *record.Log, at int64) {
			l.Guesses.Add(record.Guess{AtNS: at + 1, Expert: 2})
			l.Reads.Add(record.Read{AskedNS: at + 1, BeganNS: at + 2, EndedNS: at + 3, PlacedNS: at + 3, Hint: 1, Expert: 2})
			l.Uses.Add(record.Use{AtNS: at + 4, Expert: 2, Rows: 1, Found: record.Resident})
		}, InSlot | Picked},
		"and evicted": {func(l *record.Log, at int64) {
			l.Reads.Add(record.Read{AskedNS: at + 1, BeganNS: at + 2, EndedNS: at + 3, PlacedNS: at + 3, Hint: 1, Expert: 2})
			l.Evictions.Add(record.Eviction{AtNS: at + 5, Expert: 2, Unused: 1})
		}, OnDisk | Wasted},
		"evicted, and read again": {func(l *record.Log, at int64) {
			l.Evictions.Add(record.Eviction{AtNS: at + 1, Expert: 2})
			l.Reads.Add(record.Read{AskedNS: at + 2, BeganNS: at + 2, EndedNS: at + 3, PlacedNS: at + 3, Expert: 2})
			l.Uses.Add(record.Use{AtNS: at + 2, Expert: 2, Rows: 1, Found: record.Missing})
		}, InSlot | Picked},
		"failed": {func(l *record.Log, at int64) {
			l.Uses.Add(record.Use{AtNS: at + 2, Expert: 2, Rows: 1, Found: record.Missing})
			l.Reads.Add(record.Read{AskedNS: at + 2, EndedNS: at + 3, Failed: 1, Expert: 2})
		}, OnDisk | Picked},
		"none of the model": {func(l *record.Log, at int64) { l.Uses.Add(record.Use{AtNS: at, Layer: 7, Expert: 99}) }, OnDisk},
	} {
		l, v, at := made()
		v.Start(nil, nil)
		if f := v.Frame(); !f.Experts.Full || len(f.Experts.Cells) != 8 || len(f.Experts.Heat) != 8 {
			t.Fatalf("the first frame is %+v", f.Experts)
		}
		tc.add(l, at)
		f := v.Frame()
		if tc.want == OnDisk {
			if f.Experts != nil {
				t.Errorf("%s: %+v has changed", name, f.Experts)
			}
			continue
		}
		if f.Experts == nil || f.Experts.Full || len(f.Experts.Index) != 1 || f.Experts.Index[0] != 2 || Cell(f.Experts.Cells[0]) != tc.want {
			t.Errorf("%s: %+v, want expert 2 as %d", name, f.Experts, tc.want)
		}
	}
}

// What was there before the view began is what it was told, unless records know better.
func TestStart(t *testing.T) {
	l, v, at := made()
	l.Evictions.Add(record.Eviction{AtNS: at + 1, Expert: 1})
	v.Start([]Cell{InSlot, InSlot, OnDisk, Reading, 0, 0, 0, InSlot}, []int64{0, 400, 0, 0, 0, 0, 0, 100})
	f := v.Frame().Experts
	if f.InSlot != 2 || f.Reading != 1 || f.Cells[1] != byte(OnDisk) || f.Heat[1] != 255 || f.Heat[7] < 120 || f.Heat[7] > 135 || f.Heat[0] != 0 {
		t.Errorf("%+v", f)
	}
	_, resident, _ := made()
	resident.meta.Machine.Resident = true
	if resident.Start(nil, nil); resident.Frame().Experts.InSlot != 8 {
		t.Error("a resident engine has experts on the disk")
	}
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Shares and rates are those of the last second, also of what was known only at its end.
func TestPipeline(t *testing.T) {
	l, v, _ := made()
	v.began -= 3e9 // it has been watching for a while
	now := v.now()
	ms := func(n int64) int64 { return now - 1000e6 + n*1e6 }
	l.Steps.Add(record.Step{Step: 1, BeganNS: ms(-500), Rows: 40})
	l.StepsEnded.Add(record.StepEnded{Step: 1, EndedNS: ms(500)})
	l.Steps.Add(record.Step{Step: 2, BeganNS: ms(700), Rows: 3, Decode: 3, Urgent: 1})
	// The device worked for a second, half of that before the window, paused for a tenth.
	l.Submissions.Add(record.Submission{Step: 1, SubmittedNS: ms(-500), BeganNS: ms(-500), EndedNS: ms(500), PausedNS: 100e6})
	l.Submissions.Add(record.Submission{Step: 2, SubmittedNS: ms(800), BeganNS: ms(800), EndedNS: ms(850), StarvedNS: 100e6})
	// Two reads side by side, and one more.
	for _, at := range []int64{100, 150, 600} {
		l.Reads.Add(record.Read{Step: 1, AskedNS: ms(at), BeganNS: ms(at), EndedNS: ms(at + 100), PlacedNS: ms(at + 100), Bytes: 5e6})
	}
	l.Reads.Add(record.Read{Step: 1, AskedNS: ms(700), BeganNS: ms(700), EndedNS: ms(710), PlacedNS: ms(710), Bytes: 5e6, Tier: record.FromHost})
	for i := range int64(10) {
		l.Handled.Add(record.Handled{Step: 2, Stage: 1, Message: 1, Layer: 1, SentNS: ms(700 + i), BeganNS: ms(701 + i), EndedNS: ms(702 + i)})
	}
	l.Requests.Add(record.Request{Request: 1, Seq: 1, ArrivedNS: ms(-500), BeganNS: ms(-500), EndedNS: ms(500), Rows: 40, Outcome: record.Cancelled})
	l.Levels.Add(record.Level{Slots: 9, SlotsUsed: 8, Waves: 2, ReadsQueued: 3, ReadsRunning: 4, ReadBytes: 5, Requests: 6})
	f := v.Frame()
	p := &f.Pipeline
	whole := float64(p.WindowUS) / 1e6
	if whole < 1 || whole > 1.2 {
		t.Fatalf("the window is %v s", whole)
	}
	near(t, "the device's share", p.Device.Busy*whole, .45+.05, .12)
	near(t, "the disk's share", p.Disk.Busy*whole, .15+.1+.01, .02)
	near(t, "bytes a second", p.BytesPerS*whole, 15e6, 100)
	near(t, "rows a second", p.RowsPerS*whole, 40, .01)
	near(t, "the second stage's share", p.Stages[1].Busy*whole, .01, .0001)
	near(t, "its messages", p.Stages[1].PerS*whole, 10, .01)
	near(t, "their wait", p.Stages[1].MailboxUS, 1000, 1)
	near(t, "the first stage's share", p.Stages[0].Busy, 0, 0)
	near(t, "answers", p.TokensPerS, 0, 0)
	idle := map[int]float64{}
	for _, s := range p.Device.Idle {
		idle[s.Cause] += s.Share * whole
	}
	near(t, "nothing was asked for", idle[int(analyse.Caller)], .2, .03)
	near(t, "the device waited for experts", idle[int(analyse.Disk)], .1, .01)
	if p.Slots != 9 || p.SlotsUsed != 8 || p.Ring != 2 || p.ReadsQueued != 3 || p.ReadsRunning != 4 || p.ReadBytes != 5 || p.Waiting != 6 {
		t.Errorf("the levels are %+v", p)
	}
	if len(p.Steps) != 1 || p.Steps[0].Step != 2 || p.Steps[0].Layer != 1 || p.Steps[0].Waiting != "experts" || p.Steps[0].Decode != 3 || !p.Steps[0].Urgent {
		t.Errorf("the steps under way are %+v", p.Steps)
	}
}

// What slots and queues held before a view was made is what they hold until there is news.
func TestLevelsOfBefore(t *testing.T) {
	l, _, _ := made()
	l.Levels.Add(record.Level{Slots: 9, SlotsUsed: 7})
	l.Levels.Add(record.Level{Slots: 9, SlotsUsed: 8})
	v := New(l, record.Meta{Epoch: time.Now()})
	if f := v.Frame(); f.Pipeline.Slots != 9 || f.Pipeline.SlotsUsed != 8 || f.Skipped != 0 {
		t.Errorf("the first frame says %+v", f.Pipeline)
	}
}

// A text's prompt advances with the steps that end, and costs what its requests did.
func TestTexts(t *testing.T) {
	l, v, at := made()
	l.Steps.Add(record.Step{Step: 1, BeganNS: at + 5, Rows: 10})
	l.Segments.Add(record.Segment{Step: 1, Request: 7, Seq: 3, Pos: 20, Rows: 10, ArrivedNS: at + 1})
	if v.Frame(); v.Sequence(3) == nil || v.Sequence(4) != nil {
		t.Fatal("the sequence is not known")
	}
	if s := v.Sequence(3); s.From != 20 || s.Done != 20 || s.ArrivedNS != at+1 || s.BeganNS != at+5 {
		t.Errorf("amid its first step it is %+v", s)
	}
	l.StepsEnded.Add(record.StepEnded{Step: 1, EndedNS: at + 9})
	l.Steps.Add(record.Step{Step: 2, BeganNS: at + 10, Rows: 10})
	l.Segments.Add(record.Segment{Step: 2, Request: 7, Seq: 3, Pos: 30, Rows: 10, ArrivedNS: at + 1})
	l.StepsEnded.Add(record.StepEnded{Step: 2, EndedNS: at + 12, Failed: 1})
	l.Requests.Add(record.Request{Request: 7, Seq: 3, ArrivedNS: at + 1, BeganNS: at + 5, EndedNS: at + 12, Rows: 20, Outcome: record.Failed, Hit: 3, Late: 2, Missed: 1, DiskBytes: 9, DeviceNS: 5000, DiskWaitNS: 7000})
	v.Frame()
	if s := v.Sequence(3); s.Done != 30 || s.EndedNS != at+9 || s.Cost != (Cost{3, 2, 1, 9, 5, 7}) || s.Answered != 0 {
		t.Errorf("after that it is %+v", s)
	}
}

// A window forgets what is older, and takes what comes late.
func TestWindow(t *testing.T) {
	w, add := new(window), func(s *sums, v float64) { s.rows += v }
	w.spread(0, 5e9, 5000, add)
	near(t, "of five seconds the last", w.total(4e9, 5e9-1).rows, 1000, 1)
	w.spread(4.5e9, 4.6e9, 70, add)
	near(t, "and what came late", w.total(4e9, 5e9-1).rows, 1070, 1)
	w.spread(1e9, 2e9, 1e6, add)
	near(t, "and what came too late", w.total(4e9, 5e9-1).rows, 1070, 1)
	w.spread(9e9, 9e9, 3, add)
	near(t, "after a pause", w.total(8e9, 9e9).rows, 3, 1e-9)
}

// No list of a frame grows without bound.
func TestBounds(t *testing.T) {
	l, v, at := made()
	for i := range uint64(5000) {
		l.Steps.Add(record.Step{Step: i + 1, BeganNS: at, Rows: 1})
		l.Segments.Add(record.Segment{Step: i + 1, Request: i + 1, Seq: i + 1, Rows: 1, ArrivedNS: at})
		l.Requests.Add(record.Request{Request: i + 1, Seq: i + 1, ArrivedNS: at, EndedNS: at + int64(i), Rows: 1})
		if i%100 == 0 {
			v.Frame()
		}
	}
	f := v.Frame()
	if len(f.Pipeline.Steps) > mostSteps || len(v.flow.steps) > mostKeptSteps+1 || len(v.texts.all) > mostTexts || len(f.Tokens) > mostTokens || len(v.tokens.back) > mostFrames {
		t.Errorf("%d steps, %d kept, %d texts, %d tokens", len(f.Pipeline.Steps), len(v.flow.steps), len(v.texts.all), len(f.Tokens))
	}
}
