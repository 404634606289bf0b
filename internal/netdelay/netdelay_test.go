package netdelay

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// through starts an echo and a proxy before it, and returns the proxy's address.
func through(t *testing.T, link Link) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go Echo(l)
	p, err := New(l.Addr().String(), link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Addr()
}

// TestDue wants bytes to arrive a delay after the link has sent them, one after the other.
func TestDue(t *testing.T) {
	at := time.Unix(100, 0)
	p := newPipe(Link{Delay: 50 * time.Microsecond, Rate: 1e9})
	for i, c := range []struct {
		came time.Duration
		n    int
		want time.Duration
	}{
		{0, 1250, 60 * time.Microsecond},                                 // 10 µs on the link
		{0, 1250, 70 * time.Microsecond},                                 // behind it
		{5 * time.Microsecond, 125, 71 * time.Microsecond},               // and behind that
		{time.Millisecond, 1250, time.Millisecond + 60*time.Microsecond}, // the link was idle
	} {
		if got := p.due(at.Add(c.came), c.n).Sub(at); got != c.want {
			t.Errorf("piece %d arrives after %v, want %v", i, got, c.want)
		}
	}
	if got := newPipe(Link{Delay: time.Second}).due(at, 1<<30).Sub(at); got != time.Second {
		t.Errorf("without a limit: %v", got)
	}
}

// TestProxy sends bytes there and back: they are the same, and none comes earlier than the link
// allows.
func TestProxy(t *testing.T) {
	link := Link{Delay: 3 * time.Millisecond, Rate: 100e6}
	c, err := net.Dial("tcp", through(t, link))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(want) // it never fails
	began := time.Now()
	go c.Write(want)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the bytes are not the same: %v", err)
	}
	// The way back begins with the first piece, so the link's time counts once.
	if took, least := time.Since(began), 2*link.Delay+time.Duration(len(want))*8*10; took < least {
		t.Errorf("%d bytes took %v, the least is %v", len(want), took, least)
	}
}

// BenchmarkRoundTrip tells what the relay adds to a delay.
func BenchmarkRoundTrip(b *testing.B) {
	for _, d := range []time.Duration{0, 50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond} {
		b.Run("delay="+d.String(), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go Echo(l)
			p, err := New(l.Addr().String(), Link{Delay: d})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			var got time.Duration
			for b.Loop() {
				if got, err = RoundTrip(p.Addr(), 64, 1000); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(got.Nanoseconds())/1000, "µs/median")
		})
	}
}
