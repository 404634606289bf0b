//go:build darwin || linux

package metal

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
)

//go:embed transfer.metal
var transferSource string

// transferThreads are the threads of a threadgroup of a transfer.
const transferThreads = 256

// greatestTransfer is the most units of one launch: a thread's number has 32 bits.
const greatestTransfer = 1 << 30

// units are the types that transfers move, by size; the largest that places and length allow is
// taken.
var units = []struct {
	size    int
	defines string
}{{16, "#define UNIT uint4\n"}, {4, "#define UNIT uint\n"}, {1, "#define UNIT uchar\n"}}

// transfers are the kernels that move memory. Metal's own copies would need an encoder of their own
// between two launches.
type transfers struct {
	b      *backend
	module *msl.Module

	mu        sync.Mutex
	pipelines map[launch.Kernel]*pipeline
}

func newTransfers(b *backend) (*transfers, error) {
	m, err := msl.Parse("transfer.metal", func(string) (string, error) { return transferSource, nil })
	if err != nil {
		return nil, err
	}
	return &transfers{b: b, module: m, pipelines: map[launch.Kernel]*pipeline{}}, nil
}

// pipeline returns a kernel, and compiles it the first time.
func (t *transfers) pipeline(k launch.Kernel) (*pipeline, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pipelines[k]; p != nil {
		return p, nil
	}
	p, err := t.b.compile(k, t.module)
	if err != nil {
		return nil, err
	}
	t.pipelines[k] = p
	return p, nil
}

// piece is n bytes of a memory from offset on.
type piece struct {
	m      *memory
	offset int
}

// transfer adds launches of a transfer kernel over n bytes of each of the pieces, which are its
// first arguments.
func (s *stream) transfer(name string, n int, pieces ...piece) error {
	x := s.record()
	for _, p := range pieces {
		if p.offset < 0 || n < 0 || p.offset+n > len(p.m.host) {
			return x.keep(fmt.Errorf("metal: %d bytes from %d of memory of %d bytes", n, p.offset, len(p.m.host)))
		}
	}
	for n > 0 {
		which := 0
		for !fits(units[which].size, n, pieces) {
			which++
		}
		u := units[which]
		p, err := s.b.own.pipeline(launch.Kernel{Name: name, Defines: u.defines})
		if err != nil {
			return x.keep(err)
		}
		count := min(n/u.size, greatestTransfer)
		x.begin(p, [3]int{(count + transferThreads - 1) / transferThreads, 1, 1}, transferThreads)
		for i := range pieces {
			x.bindMemory(pieces[i].m, pieces[i].offset)
			pieces[i].offset += count * u.size
		}
		x.bindCount(uint32(count))
		n -= count * u.size
	}
	return nil
}

// fits reports whether units of a size can be moved: the pieces begin at multiples of it and have
// at least one.
func fits(size, n int, pieces []piece) bool {
	if n < size {
		return false
	}
	for _, p := range pieces {
		if (p.m.address+uint64(p.offset))%uint64(size) != 0 {
			return false
		}
	}
	return true
}
