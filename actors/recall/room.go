package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// reserve is how many bytes of the disk are left to others.
const reserve = 1 << 30

// makeRoom removes files until as many bytes as a new one has fit within the limit and on the disk.
// What keep needs stays. Where all of them would not do, none is removed.
func (s *Store) makeRoom(ctx context.Context, bytes int64, keep *stretch) error {
	free, err := s.cfg.free()
	if err != nil {
		return err
	}
	s.mu.Lock()
	held := s.found.bytes
	s.mu.Unlock()
	lacks := max(held+bytes-s.cfg.Limit, bytes+reserve-free)
	switch {
	case bytes > s.cfg.Limit:
		return fmt.Errorf("the state of a text takes %d bytes and all of them may take %d; raise that limit", bytes, s.cfg.Limit)
	case lacks > held:
		return fmt.Errorf("%w: %d bytes are free, %d are left to others", errNoRoom, free, int64(reserve))
	case lacks <= 0:
		return nil
	}
	return s.giveUp(ctx, lacks, keep)
}

// errNoRoom says that the disk has no room even for the newest text.
var errNoRoom = errors.New("there is no room on the disk")

// giveUp removes files of a number of bytes: first those of no use, then those that nobody goes on
// from, by last use.
func (s *Store) giveUp(ctx context.Context, bytes int64, keep *stretch) error {
	for bytes > 0 {
		f := s.worst(keep)
		if f == nil {
			return errNoRoom
		}
		if err := s.files.Remove(ctx, f.name); err != nil && !errors.Is(err, store.ErrNone) {
			return err
		}
		bytes -= f.bytes
		s.mu.Lock()
		s.found.drop(f.name)
		s.mu.Unlock()
	}
	return nil
}

// worst returns the file to remove next, nil if there is none.
func (s *Store) worst(keep *stretch) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	var useless, useful []*file
	for _, f := range s.found.strays {
		useless = append(useless, f)
	}
	for _, t := range s.found.tips {
		useful = append(useful, &t.file)
	}
	for _, n := range s.found.stretches {
		switch {
		case len(n.children) > 0 || len(n.tips) > 0 || n.within(keep):
		case n.in.identity == s.cfg.Identity && s.parts.recurrent():
			useless = append(useless, &n.file)
		default:
			useful = append(useful, &n.file)
		}
	}
	for _, list := range [][]*file{useless, useful} {
		if len(list) > 0 {
			return slices.MinFunc(list, func(a, b *file) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
		}
	}
	return nil
}
