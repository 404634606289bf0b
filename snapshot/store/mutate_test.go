package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// vandal damages a folder.
type vandal struct {
	rng *rand.Rand
	*disk
	touched map[string]bool // sessions that the folder is not asked to have kept
}

// name returns a file's name that is damaged, or belongs to the store, or to nobody.
func (v *vandal) name() string {
	names := slices.Sorted(maps.Keys(v.seen))
	if v.rng.IntN(4) == 0 {
		return []string{"", ".lock", "writing-0.tmp", "writing-1.tmp", "writing-x.tmp", ".snapshot", "%.snapshot", "A.snapshot", "index", "%2e%2e%2fetc.snapshot",
			"%00.snapshot", "new.snapshot", fileOf("Ünï"), string([]byte{0xff, 0xfe}) + sessionSuffix}[v.rng.IntN(14)]
	}
	b := []byte(names[v.rng.IntN(len(names))])
	for range v.rng.IntN(3) {
		at := v.rng.IntN(len(b) + 1)
		switch v.rng.IntN(4) {
		case 0:
			b = slices.Insert(b, at, "%aA0.z \x00/\xff"[v.rng.IntN(10)])
		case 1:
			b = b[:at]
		case 2:
			if at < len(b) {
				b[at] ^= 1 << v.rng.IntN(8)
			}
		default:
			b = append(b, b[at:]...)
		}
	}
	return string(b)
}

// spoil damages a content.
func (v *vandal) spoil(b []byte) []byte {
	b = slices.Clone(b)
	if len(b) == 0 {
		return []byte{1}
	}
	at := v.rng.IntN(len(b))
	if v.rng.IntN(2) == 0 { // the seal
		at = len(b) - 1 - v.rng.IntN(min(len(b), 120))
	}
	switch v.rng.IntN(5) {
	case 0:
		b[at] ^= 1 << v.rng.IntN(8)
	case 1:
		b = b[:at]
	case 2:
		b = append(b, b[at:]...)
	case 3:
		clear(b[at:min(len(b), at+40)])
	default:
		b = slices.Insert(b, at, byte(v.rng.Uint32()))
	}
	return b
}

// strike does one thing to the folder.
func (v *vandal) strike() {
	names := slices.Sorted(maps.Keys(v.seen))
	from, to := names[v.rng.IntN(len(names))], v.name()
	for _, file := range []string{from, to} {
		if name, ok := sessionOf(file); ok {
			v.touched[name] = true
		}
	}
	n := v.seen[from]
	v.ids++
	other := &node{id: v.ids, content: n.content, used: v.clock}
	if v.rng.IntN(3) == 0 {
		other.id, other.used = n.id, n.used // as alike as can be
	}
	switch v.rng.IntN(6) {
	case 0: // another name
		delete(v.seen, from)
		v.seen[to] = n
	case 1: // a second name
		v.seen[to] = other
	case 2:
		delete(v.seen, from)
	case 3: // two files change names
		if second := v.seen[to]; second != nil {
			v.seen[from], v.seen[to] = second, n
		}
	case 4: // empty
		other.content = nil
		v.seen[to] = other
	default:
		other.content = v.spoil(n.content)
		v.seen[from] = other
	}
}

// TestMutations damages folders at random: names, contents, leftovers, times, many times under the
// eyes of an open store. What a store gives out then is to the last byte what was once put, all
// that was left alone is there, and it goes on.
func TestMutations(t *testing.T) {
	rounds := testenv.Rounds(5_000, 15_000, 500_000)
	const seed1, seed2 = 21, 22
	rng := rand.New(rand.NewPCG(seed1, seed2))
	put := map[string][]byte{} // by content
	original := &process{disk: newDisk()}
	s := mustOpen(t, original, Options{})
	sessions := map[string][]byte{}
	for i, name := range []string{"a", "b", "Two words", "é"} {
		sessions[name] = stateOf(t, []snapshot.Fingerprint{ours, ours, ours, theirs}[i], count(2*i+1), uint64(i))
		put[string(sessions[name])] = sessions[name]
		mustPut(t, s, name, sessions[name])
	}
	next := stateOf(t, ours, count(4), 77)
	put[string(next)] = next
	var counts struct{ whole, refused, unreadable, found, none int }
	for round := range rounds {
		p := &process{disk: original.disk.clone()}
		v := &vandal{rng, p.disk, map[string]bool{}}
		s := mustOpen(t, p, Options{})
		if round%2 == 0 { // it remembers what then changes
			contents(t, s)
		}
		for range 1 + rng.IntN(3) {
			if len(v.seen) > 0 {
				v.strike()
			}
		}
		if round%3 == 0 {
			s = mustOpen(t, p, Options{})
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("round %d of seed %d,%d: %s", round, seed1, seed2, fmt.Sprintf(format, args...))
		}
		all, err := s.List()
		if err != nil {
			fail("%v", err)
		}
		listed := map[string]bool{}
		for _, e := range all {
			if listed[e.Name] = true; e.Err != nil && !errors.Is(e.Err, ErrDamaged) {
				fail("session %q: %v", e.Name, e.Err)
			}
			got, err := s.Get(e.Name)
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					fail("session %q: %v", e.Name, err)
				}
				counts.refused++
				continue
			}
			if whole, err := intact(got); err != nil || put[string(whole)] == nil {
				// The seal is whole, the body is not: whoever loads it is told.
				if !errors.As(err, new(*snapshot.Error)) {
					fail("session %q has what was never put: %v", e.Name, err)
				}
				counts.unreadable++
				continue
			}
			counts.whole++
		}
		for name, content := range sessions {
			if !v.touched[name] && (!listed[name] || !bytes.Equal(contentOf(t, s, name), content)) {
				fail("session %q was left alone and is gone", name)
			}
		}
		query := count(rng.IntN(8))
		got, err := s.Longest([]snapshot.Fingerprint{ours}, query)
		switch {
		case err == nil:
			if got.Fingerprint != ours || got.Positions > len(query) || !slices.Equal(got.Seal.Tokens, query[:got.Positions]) {
				fail("for %v found %+v", query, got.Entry)
			}
			counts.found++
		case !errors.Is(err, ErrNone):
			fail("for %v: %v", query, err)
		default:
			counts.none++
		}
		name := []string{"a", "new"}[rng.IntN(2)]
		if err := s.Put(context.Background(), name, inPieces(next)); err != nil || !bytes.Equal(contentOf(t, s, name), next) {
			fail("then %v", err)
		}
		if left := leftovers(t, p); len(left) != 0 {
			fail("left behind: %q", left)
		}
	}
	t.Logf("%d folders damaged: %d sessions were whole, %d refused for their seal, %d for their body when loaded; %d searches found one, %d none",
		rounds, counts.whole, counts.refused, counts.unreadable, counts.found, counts.none)
	if counts.whole == 0 || counts.refused == 0 || counts.unreadable == 0 || counts.found == 0 || counts.none == 0 {
		t.Error("none of one kind")
	}
}

// intact reads a session as one that loads it does, and closes it.
func intact(s *Session) ([]byte, error) {
	defer s.Close()
	f, err := snapshot.Open(s, s.Bytes, shape, snapshot.ReadOptions{})
	if err == nil {
		err = f.Verify()
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, s.Bytes)
	_, err = s.ReadAt(b, 0)
	return b, err
}
