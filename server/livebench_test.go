package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// BenchmarkLive generates text for a second without a listener to the live feed and for a second
// with one, in turns, and tells the quarters of the pairs' differences. MOEFLUX_BENCH_MODEL names
// another model than the demo model, which must have a tokenizer.
func BenchmarkLive(b *testing.B) {
	dir := os.Getenv("MOEFLUX_BENCH_MODEL")
	if dir == "" {
		var err error
		if dir, err = moeflux.DemoDir(b.Context(), ""); err != nil {
			b.Fatal(err)
		}
	}
	var o moeflux.Options
	o.Config.ExpertIO = "buffered"
	o.Config.ExpertMemory = 8 << 20
	m, err := moeflux.Open(b.Context(), dir, o)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(context.Background())
	s, err := New(Options{Models: []models.Served{{Name: "x", Model: m, Engine: func() models.Engine { return m.Engine() }}}})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	var longer, more []float64 // per cent: wall time and processor time of a token
	var frames int
	generate(b, m, time.Second) // warm
	for n := 0; b.Loop(); n++ {
		var wall, cpu [2]float64
		for i := range wall {
			if (i+n)%2 == 0 { // who is first changes
				wall[0], cpu[0] = generate(b, m, time.Second)
				continue
			}
			stop, seen := hear(b, web.URL)
			wall[1], cpu[1] = generate(b, m, time.Second)
			stop()
			frames += <-seen
			eventually(b, "the listener goes", func() bool { return s.views.Listeners() == 0 })
		}
		longer, more = append(longer, 100*(wall[1]/wall[0]-1)), append(more, 100*(cpu[1]/cpu[0]-1))
	}
	slices.Sort(longer)
	slices.Sort(more)
	for _, q := range []int{1, 2, 3} {
		b.ReportMetric(longer[len(longer)*q/4], fmt.Sprintf("%%-longer-q%d", q))
		b.ReportMetric(more[len(more)*q/4], fmt.Sprintf("%%-cpu-q%d", q))
	}
	b.ReportMetric(float64(frames)/float64(len(longer)), "frames/s")
}

// generate writes text for a time and returns the wall time and the processor time of a token.
func generate(b *testing.B, m *moeflux.Model, during time.Duration) (wall, cpu float64) {
	b.Helper()
	began, spent, tokens := time.Now(), processor(b), 0
	for time.Since(began) < during {
		r := moeflux.Request{Prompt: "package main", NoReuse: true, Interrupted: func() bool { return time.Since(began) >= during }}
		for e, err := range m.Generate(b.Context(), r) {
			if err != nil {
				b.Fatal(err)
			}
			if e.Token != nil {
				tokens++
			}
		}
	}
	return time.Since(began).Seconds() / float64(tokens), (processor(b) - spent) / float64(tokens)
}

// processor returns the processor time of this process in seconds.
func processor(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// hear listens to the feed until stop is called; then seen has the number of frames.
func hear(b *testing.B, url string) (stop func(), seen <-chan int) {
	b.Helper()
	l := listenTo(b, url)
	n := make(chan int, 1)
	name, _ := l.event() // the first frame
	go func() {
		frames := 0
		for ; name != ""; name, _ = l.event() {
			frames++
		}
		n <- frames
	}()
	return l.stop, n
}
