package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// scenario is what a process does with the sessions of base when something happens to it.
type scenario struct {
	name string
	run  func(*Store) error
	// goes is what each session is when run is done; nil for gone. Before that it may be what it
	// was.
	goes map[string][]byte
	// evicted is removed if, and only if, this has happened to the session "alpha"; "" for none.
	evicted string
}

const baseMax = 2500

// base returns a disk with three sessions and what a killed writer left.
func base(t *testing.T) (*disk, map[string][]byte) {
	t.Helper()
	d := newDisk()
	s := mustOpen(t, &process{disk: d}, Options{})
	sessions := map[string][]byte{}
	for i, name := range []string{"beta", "alpha", "gamma"} {
		sessions[name] = stateOf(t, ours, count(10+i), uint64(i))
		mustPut(t, s, name, sessions[name])
	}
	dying := &process{disk: d}
	dying.at, dying.as = opsOf(t, d, func(s *Store) error { return s.Put(context.Background(), "alpha", inPieces(sessions["beta"])) })/2, killBefore
	if err := mustOpen(t, dying, Options{}).Put(context.Background(), "alpha", inPieces(sessions["beta"])); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if left := leftovers(t, &process{disk: d}); len(left) != 1 {
		t.Fatalf("a killed writer has left %v", left)
	}
	return d, sessions
}

// opsOf returns how many operations opening a store and using it takes.
func opsOf(t *testing.T, d *disk, run func(*Store) error) int {
	t.Helper()
	p := &process{disk: d.clone()}
	if err := run(mustOpen(t, p, Options{MaxBytes: baseMax})); err != nil {
		t.Fatal(err)
	}
	return p.ops
}

// TestFaults has every single operation of a process fail, or kill the process before or after it,
// and the power fail then or not. Each time the store opens, each session is what it was or what it
// was to be, and the store goes on.
func TestFaults(t *testing.T) {
	d, sessions := base(t)
	larger := stateOf(t, ours, count(40), 9)
	ctx := context.Background()
	for _, sc := range []scenario{
		{"replace", func(s *Store) error { return s.Put(ctx, "alpha", inPieces(larger)) }, map[string][]byte{"alpha": larger}, "beta"},
		{"add", func(s *Store) error { return s.Put(ctx, "new", inPieces(sessions["beta"])) }, map[string][]byte{"new": sessions["beta"]}, ""},
		{"remove", func(s *Store) error { return s.Remove(ctx, "gamma") }, map[string][]byte{"gamma": nil}, ""},
		{"read", func(s *Store) error {
			got, err := s.Get("gamma")
			if err == nil {
				_ = got.Close()
				got, err = s.Longest([]snapshot.Fingerprint{ours}, count(12))
			}
			if err == nil {
				_ = got.Close()
			}
			return err
		}, nil, ""},
	} {
		t.Run(sc.name, func(t *testing.T) { testFaults(t, d, sessions, sc) })
	}
}

func testFaults(t *testing.T, d *disk, sessions map[string][]byte, sc scenario) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := opsOf(t, d, sc.run)
	var tried, changed, kept int
	hit := map[string]int{}
	for at := 1; at <= n; at++ {
		for as := range faults {
			for variant := range 4 {
				p := &process{disk: d.clone(), at: at, as: as, err: []error{syscall.EIO, syscall.ENOSPC}[variant%2], stays: variant >= 2}
				if as >= killBefore && variant > 0 {
					break
				}
				err := attempt(p, sc.run)
				if len(p.trail) < at {
					t.Fatalf("operation %d of %d did not come", at, n)
				}
				what := fmt.Sprintf("%s, operation %d (%s), fault %d, variant %d: %v", sc.name, at, p.trail[at-1], as, variant, err)
				hit[p.trail[at-1]]++
				checkError(t, what, err, p)
				for o := range outages {
					for range map[outage]int{byChance: 5}[o] + 1 {
						tried++
						if checkSessions(t, what+fmt.Sprintf(", outage %d", o), &process{disk: p.after(o, rng)}, sessions, sc, err == nil) {
							changed++
						} else {
							kept++
						}
					}
				}
				if as < killBefore { // the same process goes on
					p.at = 0
					checkSessions(t, what, p, sessions, sc, err == nil)
				}
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d operations, %d faults tried: after %d all was as before, after %d as it was to be; by operation: %v", n, tried, kept, changed, hit)
	if sc.goes != nil && (changed == 0 || kept == 0) {
		t.Error("all ended in the same way")
	}
}

// attempt opens a store and uses it.
func attempt(p *process, run func(*Store) error) error {
	s, err := Open(context.Background(), p, Options{MaxBytes: baseMax})
	if err != nil {
		return err
	}
	return run(s)
}

func checkError(t *testing.T, what string, err error, p *process) {
	t.Helper()
	if err == nil {
		// after the last one that matters
		if op := p.trail[p.at-1]; p.dead && op != "close" && op != "touch" && (op != "read" || p.as == killBefore) {
			t.Errorf("%s: the process is dead, and no error", what)
		}
		return
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		t.Errorf("%s: not typed", what)
	// a search passes over what it cannot read
	case p.dead && !errors.Is(err, errKilled) && e.Kind != ErrNone:
		t.Errorf("%s: want that the process was killed", what)
	case !p.dead && p.err == syscall.ENOSPC && e.Kind != ErrDiskFull && e.Kind != ErrUnsettled && e.Kind != ErrNoRoom && e.Kind != ErrFolder && e.Kind != ErrNone:
		t.Errorf("%s: want %v", what, ErrDiskFull)
	}
}

// checkSessions opens a store, holds its sessions against what they may be and puts one more. It
// reports whether what the scenario does has been done.
func checkSessions(t *testing.T, what string, p *process, before map[string][]byte, sc scenario, done bool) bool {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, p, Options{MaxBytes: baseMax})
	if err != nil {
		t.Errorf("%s: the store does not open: %v", what, err)
		return false
	}
	if left := leftovers(t, p); len(left) != 0 {
		t.Errorf("%s: left behind: %v", what, left)
	}
	now, changed := contents(t, s), false
	for name, after := range sc.goes {
		if changed = bytes.Equal(now[name], after) && (now[name] == nil) == (after == nil); !changed && (done || !bytes.Equal(now[name], before[name])) {
			t.Errorf("%s: session %s has %d bytes, want %d, or %d if it was not done", what, name, len(now[name]), len(after), len(before[name]))
		}
	}
	for name, content := range before {
		if _, ok := sc.goes[name]; ok || name == sc.evicted && now[name] == nil && changed {
			continue
		}
		if !bytes.Equal(now[name], content) {
			t.Errorf("%s: session %s has %d bytes, want %d; changed: %v", what, name, len(now[name]), len(content), changed)
		}
	}
	for name := range now {
		if before[name] == nil && sc.goes[name] == nil {
			t.Errorf("%s: there is a session %q", what, name)
		}
	}
	next := before["gamma"]
	if err := s.Put(ctx, "next", inPieces(next)); err != nil || !bytes.Equal(contentOf(t, s, "next"), next) {
		t.Errorf("%s: then %v", what, err)
	}
	if total := totalOf(t, p); total > baseMax {
		t.Errorf("%s: then %d bytes, want at most %d", what, total, baseMax)
	}
	return changed
}

func totalOf(t *testing.T, folder FS) (total int64) {
	t.Helper()
	files, err := folder.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		total += f.Bytes
	}
	return total
}

// A writer that lives is no leftover, and the folder's lock is waited for.
func TestLocks(t *testing.T) {
	folders(t, func(t *testing.T, folder FS) {
		s := mustOpen(t, folder, Options{})
		content := stateOf(t, ours, count(3), 1)
		err := s.Put(context.Background(), "a", func(w io.Writer) error {
			other := mustOpen(t, folder, Options{})
			mustPut(t, other, "a", stateOf(t, ours, count(2), 1))
			mustPut(t, other, "b", content)
			if left := leftovers(t, folder); len(left) != 1 {
				t.Errorf("while one is being written there are %v", left)
			}
			return inPieces(content)(w)
		})
		if err != nil {
			t.Fatal(err)
		}
		if all := contents(t, s); len(all) != 2 || !bytes.Equal(all["a"], content) {
			t.Errorf("%d sessions", len(all))
		}
		release, err := folder.TryLock(lockName)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errBroken)
		if err := s.Put(ctx, "a", inPieces(content)); !errors.Is(err, errBroken) {
			t.Errorf("while the folder is locked: %v", err)
		}
		if err := s.Remove(ctx, "a"); !errors.Is(err, errBroken) {
			t.Errorf("while the folder is locked: %v", err)
		}
		contents(t, s) // readers need none
		done := make(chan error)
		go func() { done <- s.Put(context.Background(), "a", inPieces(content)) }()
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// While one process removes the oldest session for want of room, another one replaces it: the new
// one stays.
func TestReplacedWhileRemoved(t *testing.T) {
	d := newDisk()
	one, newer := stateOf(t, ours, count(4), 1), stateOf(t, ours, count(4), 2)
	a := &process{disk: d}
	s := mustOpen(t, a, Options{MaxBytes: 2 * int64(len(one))})
	mustPut(t, s, "oldest", one)
	mustPut(t, s, "old", one)
	other := mustOpen(t, &process{disk: d}, Options{})
	done := make(chan error, 1)
	a.before = func(op string) {
		if op != "remove" {
			return
		}
		a.before = nil
		go func() { done <- other.Put(context.Background(), "oldest", inPieces(newer)) }()
		select { // it waits for the lock, or is through
		case err := <-done:
			done <- err
		case <-time.After(50 * time.Millisecond):
		}
	}
	mustPut(t, s, "new", one)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if all := contents(t, s); !bytes.Equal(all["oldest"], newer) {
		t.Error("what the other process stored is gone")
	}
}

// Many writers and readers of many stores on one folder: what is read was once put whole.
func TestTogether(t *testing.T) {
	path := t.TempDir()
	states := map[string]bool{}
	var all [][]byte
	for i := range 6 {
		all = append(all, stateOf(t, ours, count(i*30+1), uint64(i)))
		states[string(all[i])] = true
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			folder, err := Dir(path)
			if err != nil {
				t.Error(err)
				return
			}
			s, err := Open(context.Background(), folder, Options{MaxBytes: 9000})
			rng := rand.New(rand.NewPCG(uint64(n), 3))
			for i := 0; i < 60 && err == nil; i++ {
				name := fmt.Sprint("s", rng.IntN(4))
				var got *Session
				switch rng.IntN(5) {
				case 0, 1:
					err = s.Put(context.Background(), name, inPieces(all[rng.IntN(len(all))]))
				case 2:
					got, err = s.Get(name)
				case 3:
					got, err = s.Longest([]snapshot.Fingerprint{ours}, count(100))
				default:
					err = s.Remove(context.Background(), name)
				}
				if errors.Is(err, ErrNone) {
					err = nil
				}
				if got != nil {
					b := make([]byte, got.Bytes)
					if _, e := got.ReadAt(b, 0); e != nil || !states[string(b)] {
						t.Errorf("read %d bytes that were never put, %v", len(b), e)
					}
					err = errors.Join(err, got.Close())
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	folder, err := Dir(path)
	if err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, folder); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if total := totalOf(t, folder); total > 9000 {
		t.Errorf("%d bytes, want at most 9000", total)
	}
}
