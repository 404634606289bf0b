package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ballastPiece = 64 << 20  // what is given up at once
	ballastLead  = 512 << 20 // how far what was given up is ahead of what the group has
	ballastLook  = 5 * time.Millisecond
)

// ballast is memory that the machine really has, held for a group that is about to grow. A virtual
// machine may have handed the memory that it does not use to its host, and gets it again much more
// slowly than a disk reads: a cold start there measures the host. What is held is given up piece by
// piece as the group takes memory, so that the kernel hands the same pages on.
type ballast struct {
	mem   []byte
	given int // bytes from the start that were given up
}

// hold takes memory and touches all of it.
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

// giveTo gives memory up as the group grows, until ctx ends, and then the rest.
func (b *ballast) giveTo(ctx context.Context, usage func() int64) {
	tick := time.NewTicker(ballastLook)
	defer tick.Stop()
	for {
		want := min(usage()+ballastLead, int64(len(b.mem)))
		for int64(b.given) < want {
			// cannot fail on a private mapping of ours
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

// beside runs f while a ballast, if there is one, is given up to the group.
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
