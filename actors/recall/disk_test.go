package recall

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// faulty is a folder on a disk that is full, or hangs.
type faulty struct {
	store.FS
	full atomic.Int64  // writes that fail from now on
	gate chan struct{} // nil: no write hangs
}

func newFaulty(t testing.TB, dir string) *faulty {
	t.Helper()
	folder, err := store.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &faulty{FS: folder}
}

func (f *faulty) Create(name string) (store.WriteFile, error) {
	w, err := f.FS.Create(name)
	return &faultyFile{w, f}, err
}

type faultyFile struct {
	store.WriteFile
	of *faulty
}

func (w *faultyFile) Write(b []byte) (int, error) {
	if w.of.gate != nil {
		<-w.of.gate
	}
	if w.of.full.Add(-1) >= 0 {
		return 0, syscall.ENOSPC
	}
	return w.WriteFile.Write(b)
}

// A full disk costs older texts, or the new one; it is said once, and so is its end.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	f := newFaulty(t, filepath.Join(dir, dirName))
	r := newRig(t, full, Config{Dir: dir, folder: unsynced{f}})
	r.keep("", 1, 1, 1)
	r.keep("", 2, 2, 2)
	f.full.Store(1)
	r.keep("", 3, 3, 3) // in the place of the first
	for first, want := range map[int32]int{1: 0, 2: 3, 3: 3} {
		if n, _ := r.find("", first, first, first, 9); n != want {
			t.Errorf("%d tokens of text %d are found, want %d", n, first, want)
		}
	}
	f.full.Store(1 << 40)
	for range 3 {
		r.keep("", 4, 4, 4)
	}
	if n := r.said.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, r.said.text.String())
	}
	f.full.Store(0)
	r.keep("", 5, 5, 5)
	if n, _ := r.find("", 5, 5, 5, 9); n != 3 || r.said.count("level=INFO") != 1 {
		t.Errorf("%d tokens are found when there is room again; the log says %s", n, r.said.text.String())
	}
}

// A part of the disk is left to others: texts give way for it, and where that cannot help none
// does.
func TestReserve(t *testing.T) {
	free := int64(reserve + 10_000)
	r := newRig(t, full, Config{free: func() (int64, error) { return free, nil }})
	r.keep("", 1, 1, 1)
	r.keep("", 2, 2, 2)
	free = reserve
	r.keep("", 3, 3, 3)
	for first, want := range map[int32]int{1: 0, 2: 3, 3: 3} {
		if n, _ := r.find("", first, first, first, 9); n != want {
			t.Errorf("%d tokens of text %d are found, want %d", n, first, want)
		}
	}
	free = 0
	r.keep("", 4, 4, 4)
	for first, want := range map[int32]int{2: 3, 3: 3, 4: 0} {
		if n, _ := r.find("", first, first, first, 9); n != want {
			t.Errorf("on a disk that others have filled %d tokens of text %d are found, want %d", n, first, want)
		}
	}
	if n := r.said.count("there is no room on the disk"); n != 1 {
		t.Errorf("the log says %s", r.said.text.String())
	}
}

// What nobody has used for longest goes first, though not before what goes on from it.
func TestOrder(t *testing.T) {
	for name, use := range map[string][]int32{"as written": nil, "the first is used": {1, 1, 5}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, full, Config{})
			r.keep("", 1, 1)
			r.keep("", 1, 1, 1)
			r.keep("", 2, 2)
			left := []int{5, 4, 2, 0} // of both texts, after each file that goes
			if use != nil {
				r.find("", use...)
			}
			for i, want := range left {
				if n := r.there(1, 1, 1) + r.there(2, 2); n != want {
					t.Errorf("%d tokens are left after %d files are gone, want %d", n, i, want)
				}
				if first := r.there(2, 2) > 0; i == 2 && first != (use == nil) {
					t.Errorf("the second text is there: %v", first)
				}
				if i < len(left)-1 {
					if err := r.giveUp(context.Background(), 1, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := r.giveUp(context.Background(), 1, nil); err != errNoRoom {
				t.Errorf("nothing is left: %v", err)
			}
		})
	}
}

// there returns how much of a text there is, without using it.
func (r *rig) there(tokens ...int32) int {
	if f := r.Find(Text{"", tokens}); f != nil {
		return len(f.Tokens)
	}
	return 0
}

// zeros is a state that takes no time to make.
type zeros struct{}

func (zeros) ReadRows(int, snapshot.Part, int, []byte) error { return nil }

// A disk that hangs while a state is being written does not keep the state in the engine's memory.
func TestHungDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty(t, filepath.Join(dir, dirName))
		r := newRig(t, full, Config{Dir: dir, folder: f})
		f.gate = make(chan struct{})
		released := make(chan struct{})
		r.freeze = func(text Text) (Frozen, error) {
			return Frozen{Tokens: text.Tokens, Source: zeros{}, Release: func() { close(released) }}, nil
		}
		done := make(chan struct{})
		r.Keep(Text{"", make([]int32, 1<<16)}, func() { close(done) })
		began := time.Now()
		<-released
		if took := time.Since(began); took < patience || took > patience+time.Second {
			t.Errorf("the state was given back after %v, want %v", took, patience)
		}
		close(f.gate)
		<-done
		if n := r.said.count(errSlow.Error()); n != 1 {
			t.Errorf("the log says %s", r.said.text.String())
		}
	})
}
