package host_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/host/hosttest"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// countedReads notes what is read.
type countedReads struct {
	readpool.Source
	mu  *sync.Mutex
	all *[]int32 // keys
	per int      // experts of a layer
}

func (c countedReads) ReadExpert(layer, expert int, dst []byte) error {
	c.mu.Lock()
	*c.all = append(*c.all, int32(layer*c.per+expert))
	c.mu.Unlock()
	return c.Source.ReadExpert(layer, expert, dst)
}

// TestPlacement tells a host what is its own: it reads that ahead, the most used first, within a
// second. It refuses an ask by an earlier placement and says so, answers one by this or a later
// one, and ends the connection of who goes back to an earlier one.
func TestPlacement(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	f, err := modelfiles.Open(modelfiles.Where{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shape := frame.Shape{Layers: len(f.Config.Layers), Experts: f.Config.NumExperts, Hidden: f.Config.HiddenSize}
	var mu sync.Mutex
	var read []int32
	var log testenv.Log
	addr := hosttest.Serve(t, expert.WithReads(expert.Config{
		Model: dir, Device: device(t), ExpertIO: "buffered", ExpertMemory: 1 << 20, Logger: log.Logger(),
	}, func(s readpool.Source) readpool.Source { return countedReads{s, &mu, &read, shape.Experts} }))
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	print, err := fingerprint.Of(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	r := frame.NewReader(conn)
	say := func(b []byte) {
		t.Helper()
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want frame.Kind, id uint64, says string) {
		t.Helper()
		x, err := r.Next()
		if err != nil || x.Kind != want || x.ID != id || !strings.Contains(string(x.Body), says) {
			t.Fatalf("heard kind %d of %d, %q, error %v; want kind %d of %d with %q", x.Kind, x.ID, x.Body, err, want, id, says)
		}
	}
	ask := func(id uint64, epoch uint32) []byte {
		q := &frame.Question{Layer: f.Experts.Layers()[0], Epoch: epoch, Uses: []frame.Use{{Expert: 1, Rows: []int32{0}}}, Inputs: make([]float32, shape.Hidden)}
		return frame.AppendAsk(nil, id, shape.Hidden, q)
	}
	say(frame.AppendHello(nil, frame.Hello, &frame.Greeting{Version: frame.Version, Shape: shape, Fingerprint: print}))
	hear(frame.Welcome, 0, "")
	r.Trust()
	first := int32(f.Experts.Layers()[0] * shape.Experts)
	own := []int32{first + 7, first + 3, first + 5, first + 1}
	say(frame.AppendShare(nil, 5, own))
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		got := append([]int32(nil), read...)
		mu.Unlock()
		if len(got) == len(own) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after a second the host has read %v of %v", got, own)
		}
	}
	say(ask(1, 4))
	hear(frame.Failed, 1, "by placement 4, and the host has 5")
	say(ask(2, 5))
	hear(frame.Answer, 2, "")
	say(ask(3, 6)) // it will hear of that
	hear(frame.Answer, 3, "")
	mu.Lock()
	if len(read) != len(own) || !strings.Contains(log.String(), "an engine asks by an old placement") {
		t.Errorf("the host has read %v; it says %s", read, log.String())
	}
	mu.Unlock()
	say(frame.AppendShare(nil, 4, own))
	if x, err := r.Next(); err == nil {
		t.Errorf("a placement that goes back is answered by kind %d", x.Kind)
	}
}
