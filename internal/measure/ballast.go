package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ballastPiece = 64 << 20  // released at once
	ballastLead  = 512 << 20 // released beyond what the group uses
	ballastLook  = 5 * time.Millisecond
)

// ballast is memory held ready for a group that is about to grow. A virtual machine may have
// returned unused memory to its host, and may get it back much more slowly than a disk reads; a
// cold start then measures the host. The ballast is released piece by piece as the group takes
// memory, so that the kernel passes the same pages on.
type ballast struct {
	mem   []byte
	given int // bytes released, from the start
}

// hold allocates memory and touches all of it.
func hold(bytes int64) (*ballast, error) {
	n := (int(bytes) + ballastLead + ballastPiece - 1) / ballastPiece * ballastPiece
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("holding %d bytes: %w", n, err)
	}
	for i := 0; i < n; i += 4096 {
		mem[i] = 1
	}
	return &ballast{mem: mem}, nil
}

// giveTo releases memory as the group grows, and the rest when ctx ends.
func (b *ballast) giveTo(ctx context.Context, usage func() int64) {
	tick := time.NewTicker(ballastLook)
	defer tick.Stop()
	for {
		want := min(usage()+ballastLead, int64(len(b.mem)))
		for int64(b.given) < want {
			// this cannot fail for a private mapping
			_ = unix.Madvise(b.mem[b.given:b.given+ballastPiece], unix.MADV_DONTNEED)
			b.given += ballastPiece
		}
		select {
		case <-ctx.Done():
			_ = unix.Munmap(b.mem)
			return
		case <-tick.C:
		}
	}
}

// beside runs f while the ballast, if there is one, is released to the group.
func (b *ballast) beside(ctx context.Context, usage func() int64, f func() error) error {
	if b == nil {
		return f()
	}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { b.giveTo(ctx, usage) })
	defer wg.Wait()
	defer stop()
	return f()
}
