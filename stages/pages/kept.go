package pages

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// Kept returns what is kept, in the order of keeping. It is read-only, and good until something is
// kept or given up.
func (b *Book) Kept() []*State { return b.kept }

// Keep adds where a text stands to what is kept: as a checkpoint of a sequence or, with owner 0,
// remembered for any text. It is ready at once if there is no recurrent state to copy.
func (b *Book) Keep(t Text, owner stages.SeqID) *State {
	s := b.freeze(t, kept)
	if b.recurrentBytes(t.Len) > 0 {
		s.ID = b.name()
		b.recurrent++
	}
	s.Owner, s.Ready = owner, s.ID == 0
	b.Use(s)
	b.kept = append(b.kept, s)
	if owner == 0 {
		b.remembered++
	}
	return s
}

// Use notes that a kept state was used.
func (b *Book) Use(s *State) {
	b.uses++
	s.used = b.uses
}

// Forget gives up a kept state.
func (b *Book) Forget(s *State) {
	b.kept = slices.DeleteFunc(b.kept, func(other *State) bool { return other == s })
	if s.ID != 0 {
		b.recurrent--
	}
	b.drop(s, kept)
	if b.forgotten != nil {
		b.forgotten(s)
	}
}

// ForgetIf gives up the kept states for which which is true.
func (b *Book) ForgetIf(which func(*State) bool) {
	for i := len(b.kept) - 1; i >= 0; i-- {
		if s := b.kept[i]; which(s) {
			b.Forget(s)
		}
	}
}

// ForgetOf gives up all checkpoints of a sequence, or with 0 all that is remembered.
func (b *Book) ForgetOf(owner stages.SeqID) {
	b.ForgetIf(func(s *State) bool { return s.Owner == owner })
}

// At returns a sequence's newest checkpoint at a position that is ready, or nil.
func (b *Book) At(owner stages.SeqID, pos int) (newest *State) {
	for _, s := range b.kept {
		if s.Owner == owner && s.Pos() == pos && s.Ready {
			newest = s
		}
	}
	return newest
}

// RoomToKeep reports whether a checkpoint fits in once what it takes the place of, and all that is
// not protected, is gone.
func (b *Book) RoomToKeep(owner stages.SeqID, pos int) error {
	need := b.recurrentBytes(pos)
	if b.keptBytes()+need <= b.sizes.CheckpointBytes {
		return nil
	}
	t := b.tally()
	replaced := func(s *State) bool { return s.Owner == owner && s.Pos() == pos }
	for _, s := range b.kept {
		if replaced(s) {
			t.change(s, -1)
		}
	}
	for _, s := range b.victims() {
		if !replaced(s) {
			t.change(s, -1)
		}
	}
	if b.fits(need)(t) {
		return nil
	}
	return &stages.CheckpointMemoryError{Need: need, Used: b.keptBytes(), Max: b.sizes.CheckpointBytes}
}

// Stands retires what a checkpoint that is ready takes the place of, what is beyond the number that
// its sequence keeps, and what no longer fits.
func (b *Book) Stands(s *State, most int) {
	for _, old := range slices.Clone(b.kept) {
		if old == s {
			break
		}
		if old.Owner == s.Owner && old.Pos() == s.Pos() {
			b.Forget(old)
		}
	}
	over := -most
	for _, other := range b.kept {
		if other.Owner == s.Owner && other.Ready {
			over++
		}
	}
	for _, v := range b.victims() {
		if over > 0 && v.Owner == s.Owner {
			b.Forget(v)
			over--
		}
	}
	b.Settle()
}

// beingReplaced reports whether another checkpoint is being made in the place of one.
func (b *Book) beingReplaced(s *State) bool {
	return slices.ContainsFunc(b.kept, func(other *State) bool {
		return other.Owner == s.Owner && other.Pos() == s.Pos() && !other.Ready
	})
}
