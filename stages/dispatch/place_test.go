package dispatch

import (
	"bytes"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/host"
)

// TestPlace holds that large weights are copied, byte for byte, and then need no page cache, and
// that small ones are read where they lie.
func TestPlace(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, copyBytes)
	for i := 0; i < len(large); i += 4096 {
		large[i] = byte(i >> 12)
	}
	for _, c := range []struct {
		mem    []byte
		mapped int
	}{{large, 0}, {large[:4096], 4096}} {
		p := &place{dev: dev}
		if err := p.whole(c.mem, queue); err != nil {
			t.Fatal(err)
		}
		buf := p.weights
		if p.mapped != c.mapped || !bytes.Equal(buf.Bytes(), c.mem) {
			t.Errorf("%d bytes: %d stay mapped, want %d; the bytes are equal: %v", len(c.mem), p.mapped, c.mapped, bytes.Equal(buf.Bytes(), c.mem))
		}
		if same := &buf.Bytes()[0] == &c.mem[0]; same != (p.mapped > 0) {
			t.Errorf("%d bytes, %d of them mapped: read where they lie: %v", len(c.mem), p.mapped, same)
		}
		buf.Release()
	}
	if err := queue.Close(); err != nil {
		t.Error(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
