package recall

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestTexts keeps random texts of two scopes that have much in common, and asks for others: what is
// found is what a look at every text says, with its bytes, also after a restart. With a bound it is
// no more than that, the bound holds, and the newest text is there.
func TestTexts(t *testing.T) {
	for name, shape := range shapes {
		for what, limit := range map[string]int64{"all": 1 << 30, "bounded": 6000} {
			t.Run(name+"/"+what, func(t *testing.T) {
				r := newRig(t, shape, Config{Limit: limit})
				rng := rand.New(rand.NewPCG(1, uint64(limit)))
				p := partsOf(shape)
				kept := map[string][][]int32{}
				some := func(scope string) []int32 {
					var text []int32
					if list := kept[scope]; len(list) > 0 && rng.IntN(4) > 0 {
						one := list[rng.IntN(len(list))]
						text = slices.Clone(one[:rng.IntN(len(one)+1)])
					}
					for range 1 + rng.IntN(6) {
						text = append(text, int32(rng.IntN(2)))
					}
					return text
				}
				reused, less := 0, 0
				for i := range 150 {
					scope := []string{"a", "b"}[rng.IntN(2)]
					text := some(scope)
					want := 0
					for _, one := range kept[scope] {
						if n := common(one, text); !p.recurrent() || n == len(one) {
							want = max(want, n)
						}
					}
					got, lost := r.find(scope, text...)
					if got > want || lost > 0 || what == "all" && got < want {
						t.Fatalf("%d of %v are found, and %d are lost; want %d", got, text, lost, want)
					}
					reused += got
					less += want - got
					if rng.IntN(2) == 0 {
						r.keep(scope, text...)
						kept[scope] = append(kept[scope], text)
						if got, _ := r.find(scope, text...); got != len(text) {
							t.Fatalf("%d of %v are found when it was just kept", got, text)
						}
					}
					if n := r.stats().StoredDisk; n > limit || n != onDisk(t, r) {
						t.Fatalf("%d bytes are counted and %d on disk, of at most %d", n, onDisk(t, r), limit)
					}
					if i%20 == 19 {
						r.reopen()
					}
				}
				if reused == 0 || (what == "bounded") != (less > 0) {
					t.Errorf("%d tokens were found, and %d not any more: the test shows nothing", reused, less)
				}
				if n := r.said.count("level=WARN"); n > 0 {
					t.Errorf("the log says %s", r.said.text.String())
				}
			})
		}
	}
}

// onDisk returns the bytes of all files of texts.
func onDisk(t *testing.T, r *rig) (n int64) {
	for _, path := range files(t, r) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func files(t *testing.T, r *rig) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(r.cfg.Dir, dirName, "*.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A turn of a conversation writes what is new, and no more: not the text before it again.
func TestOnlyTheNew(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, shape, Config{})
			text := make([]int32, 1000)
			r.keep("", text...)
			before := onDisk(t, r)
			text = append(text, 1, 2, 3)
			r.keep("", text...)
			p, overhead := partsOf(shape), 700 // of two files
			if grew, new := int(onDisk(t, r)-before), size(shape, 3); grew < new || grew > new+overhead {
				t.Errorf("3 positions take %d bytes, want %d and the ends of %d layers", grew, new, len(p.rowsLayers))
			}
			before, n := onDisk(t, r), len(files(t, r))
			asked := 0
			r.freeze = func(text Text) (Frozen, error) {
				asked++
				return r.have(text.Tokens), nil
			}
			r.keep("", text...)
			if asked > 0 {
				t.Error("the engine is asked for a state that is there")
			}
			r.keep("", text[:500]...)
			if grew := len(files(t, r)) - n; grew != len(p.stateLayers)/2 { // the tip at 500
				t.Errorf("%d files more of what was there, %d bytes", grew, onDisk(t, r)-before)
			}
		})
	}
}

// No scope finds texts of another, nor does an engine that would compute other bits. Files and
// folder are private, and do not have the scope's name.
func TestScopes(t *testing.T) {
	r := newRig(t, linear, Config{Identity: snapshot.Fingerprint{1}})
	r.keep("sk-secret", 1, 2, 3, 4)
	for _, scope := range []string{"", "other", "sk-secre", "sk-secret "} {
		if n, _ := r.find(scope, 1, 2, 3, 4, 5); n != 0 {
			t.Errorf("the scope %q finds %d tokens of another", scope, n)
		}
	}
	other := newRig(t, linear, Config{Dir: r.cfg.Dir, Identity: snapshot.Fingerprint{2}})
	if n, _ := other.find("sk-secret", 1, 2, 3, 4, 5); n != 0 {
		t.Errorf("another model finds %d tokens", n)
	}
	same := newRig(t, linear, Config{Dir: r.cfg.Dir, Identity: snapshot.Fingerprint{1}})
	if n, _ := same.find("sk-secret", 1, 2, 3, 4, 5); n != 4 {
		t.Errorf("the same model finds %d tokens, want 4", n)
	}
	err := filepath.WalkDir(filepath.Join(r.cfg.Dir, dirName), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "secret") || strings.Contains(path, "secret") {
			t.Errorf("%s has the scope's name", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A file that is damaged, cut short or gone costs what it had, is told once, and nothing else is
// harmed.
func TestDamage(t *testing.T) {
	var other string // the file of another text, with as many positions
	spoil := map[string]func(path string) error{
		"another's": func(path string) error {
			raw, err := os.ReadFile(other)
			if err == nil {
				err = os.WriteFile(path, raw, 0o600)
			}
			return err
		},
		"gone": os.Remove,
		"cut":  func(path string) error { return os.Truncate(path, 50) },
		"bits": func(path string) error {
			raw, err := os.ReadFile(path)
			if err == nil {
				raw[60] ^= 1
				err = os.WriteFile(path, raw, 0o600)
			}
			return err
		},
	}
	for what, do := range spoil {
		for _, again := range []bool{false, true} {
			t.Run(what+map[bool]string{true: "/after a restart"}[again], func(t *testing.T) {
				r := newRig(t, linear, Config{})
				r.keep("", 9, 9)
				other = files(t, r)[0]
				r.keep("", 1, 2, 3)
				first := files(t, r)
				r.keep("", 1, 2, 3, 4, 5)
				for _, path := range files(t, r) {
					if !slices.Contains(first, path) && strings.Contains(path, stretchName) {
						if err := do(path); err != nil {
							t.Fatal(err)
						}
					}
				}
				r.keep("", 8) // which looks at the folder
				if again {
					r.reopen()
				}
				for range 2 {
					if n, _ := r.find("", 1, 2, 3, 4, 5, 6); n != 3 {
						t.Errorf("%d tokens are found, want the 3 before the damage", n)
					}
				}
				if n, _ := r.find("", 9, 9, 9); n != 2 {
					t.Errorf("%d tokens of another text are found, want 2", n)
				}
				r.keep("", 1, 2, 3, 4, 5)
				if n, _ := r.find("", 1, 2, 3, 4, 5, 6); n != 5 {
					t.Errorf("%d tokens are found when the text was kept again, want 5", n)
				}
				want := 1
				if what == "gone" || what == "another's" && again { // then it is known for what it is
					want = 0
				}
				if n := r.said.count("level=WARN"); n != want {
					t.Errorf("%d warnings, want %d: %s", n, want, r.said.text.String())
				}
			})
		}
	}
}

// A state that is not to be had now is asked for again, and what cannot be had is left out without
// a word.
func TestNotNow(t *testing.T) {
	r := newRig(t, linear, Config{})
	asked := 0
	r.freeze = func(text Text) (Frozen, error) {
		switch asked++; {
		case text.Tokens[0] == 7, asked == 1:
			return Frozen{}, stages.ErrUnknownState
		case asked == 2:
			return Frozen{}, new(stages.StateMemoryError)
		case asked == 3:
			return r.have(text.Tokens[:1]), nil
		}
		return r.have(text.Tokens), nil
	}
	r.keep("", 1, 2, 3)
	if n, _ := r.find("", 1, 2, 3, 4); n != 3 || asked != 4 {
		t.Errorf("%d tokens are found after %d questions, want 3 after 4", n, asked)
	}
	r.keep("", 7)
	if n := r.said.count("level=WARN"); n > 0 || asked != 4+freezeTries {
		t.Errorf("asked %d times; the log says %s", asked, r.said.text.String())
	}
}

// What waits is left out when the store is closed, and where too much waits; each is told.
func TestQueue(t *testing.T) {
	r := newRig(t, full, Config{})
	// Any text may still be asked for, when the gate is open and the store is not closed yet.
	begun, gate := make(chan struct{}, 4*most), make(chan struct{})
	r.freeze = func(text Text) (Frozen, error) {
		begun <- struct{}{}
		<-gate
		return Frozen{}, errors.New("this engine has no states")
	}
	ends := make(chan int, 2*most+2)
	for i := range 2*most + 1 {
		r.Keep(Text{"", []int32{int32(i), 5}}, func() { ends <- i })
		if i == 0 {
			<-begun
		}
	}
	r.Keep(Text{"", []int32{2 * most, 5, 6}}, func() { ends <- -1 }) // which has all of the one before
	for i := 1; i <= most; i++ {
		if got := <-ends; got != i && !(i == most && got == 2*most) {
			t.Errorf("text %d is left out, want %d", got, i)
		}
	}
	go close(gate)
	r.Close()
	r.Keep(Text{"", []int32{1}}, func() { ends <- -2 })
	if n := len(ends); n != most+3 {
		t.Errorf("%d texts ended, want %d", n, most+3)
	}
}
