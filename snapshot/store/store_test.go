package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

var shape = &snapshot.Shape{
	Layers: []model.Mixer{model.LinearAttention, model.FullAttention}, KVHeads: 1, HeadDim: 2,
	ConvRows: 1, ConvDim: 3, ValueHeads: 1, ValueDim: 2, KeyDim: 2,
}

var ours, theirs = snapshot.Fingerprint{1}, snapshot.Fingerprint{2}

// noise is a state of arbitrary bits.
type noise struct{ rng *rand.Rand }

func (n noise) ReadRows(_ int, _ snapshot.Part, _ int, dst []byte) error {
	for i := 0; i < len(dst); i += 4 {
		binary.LittleEndian.PutUint32(dst[i:], n.rng.Uint32())
	}
	return nil
}

// writeState writes a state of these tokens that another seed makes another one.
func writeState(w io.Writer, of snapshot.Fingerprint, tokens []int32, seed uint64) error {
	_, err := snapshot.Write(w, shape, noise{rand.New(rand.NewPCG(seed, 1))}, snapshot.WriteOptions{
		Positions: len(tokens), Seal: &snapshot.Seal{Fingerprint: of, Tokens: tokens},
	})
	return err
}

func stateOf(t testing.TB, of snapshot.Fingerprint, tokens []int32, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeState(&b, of, tokens, seed); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// count returns the tokens 1 to n.
func count(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i + 1)
	}
	return ids
}

// inPieces writes a content in many small writes.
func inPieces(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for piece := range slices.Chunk(content, 48) {
			if _, err := w.Write(piece); err != nil {
				return fmt.Errorf("writing the state: %w", err)
			}
		}
		return nil
	}
}

func mustOpen(t testing.TB, folder FS, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPut(t testing.TB, s *Store, name string, content []byte) {
	t.Helper()
	if err := s.Put(context.Background(), name, inPieces(content)); err != nil {
		t.Fatal(err)
	}
}

// contents returns what all sessions hold. Each must be one.
func contents(t testing.TB, s *Store) map[string][]byte {
	t.Helper()
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if e.Err != nil {
			t.Fatalf("session %q: %v", e.Name, e.Err)
		}
		all[e.Name] = contentOf(t, s, e.Name)
	}
	return all
}

func contentOf(t testing.TB, s *Store, name string) []byte {
	t.Helper()
	got, err := s.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	return bytesOf(t, got)
}

func bytesOf(t testing.TB, s *Session) []byte {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(s, 0, s.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantKind checks an error's type, kind and session.
func wantKind(t testing.TB, err, kind error, session string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, kind) || e.Kind != kind || e.Session != session {
		t.Errorf("got %v, want an *Error about session %q: %v", err, session, kind)
	}
}

// folders are the kinds of folder that the tests run on.
func folders(t *testing.T, f func(t *testing.T, folder FS)) {
	t.Run("memory", func(t *testing.T) { f(t, &process{disk: newDisk()}) })
	t.Run("disk", func(t *testing.T) {
		folder, err := Dir(t.TempDir() + "/new/folder")
		if err != nil {
			t.Fatal(err)
		}
		f(t, folder)
	})
}

func TestPutGet(t *testing.T) {
	folders(t, func(t *testing.T, folder FS) {
		s := mustOpen(t, folder, Options{})
		if all, err := s.List(); err != nil || len(all) != 0 {
			t.Fatalf("a new folder holds %v, %v", all, err)
		}
		_, err := s.Get("a")
		wantKind(t, err, ErrNone, "a")
		first, second, other := stateOf(t, ours, count(3), 1), stateOf(t, theirs, count(5), 2), stateOf(t, ours, nil, 3)
		mustPut(t, s, "a", first)
		held, err := s.Get("a")
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		mustPut(t, s, "Zoë's / draft", other)
		mustPut(t, s, "a", second)
		for name, want := range map[string][]byte{"a": second, "Zoë's / draft": other} {
			if got := contentOf(t, s, name); !bytes.Equal(got, want) {
				t.Errorf("session %q has %d bytes, want %d that were put", name, len(got), len(want))
			}
		}
		if held.Positions != 3 || held.Fingerprint != ours || !slices.Equal(held.Seal.Tokens, count(3)) || !bytes.Equal(bytesOf(t, held), first) {
			t.Error("an open session has changed with its name")
		}
		// What another store sees, or this one after it has forgotten.
		all, err := mustOpen(t, folder, Options{}).List()
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		if e := all[slices.IndexFunc(all, func(e Entry) bool { return e.Name == "a" })]; e.Positions != 5 || e.Fingerprint != theirs || e.Bytes != int64(len(second)) || e.Err != nil {
			t.Errorf("listed as %+v", e)
		}
		if err := s.Remove(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		wantKind(t, s.Remove(context.Background(), "a"), ErrNone, "a")
		if all := contents(t, s); len(all) != 1 {
			t.Errorf("after a removal there are %d sessions", len(all))
		}
	})
}

// A writer that fails, or writes something else, leaves what was there and nothing more.
func TestPutRefused(t *testing.T) {
	folders(t, func(t *testing.T, folder FS) {
		s := mustOpen(t, folder, Options{MaxBytes: 1000})
		old := stateOf(t, ours, count(3), 1)
		mustPut(t, s, "a", old)
		ctx, cancel := context.WithCancelCause(context.Background())
		unsealed := old[:len(old)-100]
		var bare bytes.Buffer
		if _, err := snapshot.Write(&bare, shape, noise{rand.New(rand.NewPCG(1, 1))}, snapshot.WriteOptions{Positions: 2, Seal: &snapshot.Seal{}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what  string
			write func(io.Writer) error
			kind  error // of the *Error
			cause error
		}{
			{"a writer that fails", func(w io.Writer) error { w.Write(old); return errBroken }, nil, errBroken},
			{"nothing", func(io.Writer) error { return nil }, ErrDamaged, snapshot.ErrTruncated},
			{"text", func(w io.Writer) error { _, err := io.WriteString(w, "some text, and more"); return err }, ErrDamaged, snapshot.ErrNotSnapshot},
			{"no seal", inPieces(unsealed), ErrDamaged, nil},
			{"no tokens", inPieces(bare.Bytes()), ErrDamaged, snapshot.ErrSeal},
			{"a damaged seal", inPieces(append(slices.Clone(old[:len(old)-1]), old[len(old)-1]^1)), ErrDamaged, snapshot.ErrSeal},
			{"too much", inPieces(stateOf(t, ours, count(200), 1)), ErrTooLarge, nil},
			{"too much, and silent about it", func(w io.Writer) error { inPieces(stateOf(t, ours, count(200), 1))(w); return nil }, ErrTooLarge, nil},
			{"a full disk", func(io.Writer) error { return fmt.Errorf("writing: %w", syscall.ENOSPC) }, ErrDiskFull, syscall.ENOSPC},
			{"a full quota", func(io.Writer) error { return syscall.EDQUOT }, ErrDiskFull, syscall.EDQUOT},
			{"a canceled writer", func(w io.Writer) error { cancel(errBroken); _, err := w.Write(old); return err }, nil, errBroken},
		} {
			err := s.Put(ctx, "a", c.write)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind != c.kind || e.Session != "a" || c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%s: %v, want kind %v, cause %v", c.what, err, c.kind, c.cause)
			}
			if got := contents(t, s); len(got) != 1 || !bytes.Equal(got["a"], old) {
				t.Errorf("%s: the folder holds %d sessions, or another state", c.what, len(got))
			}
			if left := leftovers(t, folder); len(left) != 0 {
				t.Errorf("%s: left behind: %v", c.what, left)
			}
		}
	})
}

func leftovers(t testing.TB, folder FS) (names []string) {
	t.Helper()
	files, err := folder.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if isWriting(f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestNames(t *testing.T) {
	s := mustOpen(t, &process{disk: newDisk()}, Options{})
	for _, name := range []string{"", " a", "a ", "a\nb", "a\x00b", "\xff", "a\u202eb", "a\u00a0b", strings.Repeat("x", MaxName+1)} {
		_, err := s.Get(name)
		wantKind(t, err, ErrName, name)
		wantKind(t, s.Put(context.Background(), name, nil), ErrName, name)
		wantKind(t, s.Remove(context.Background(), name), ErrName, name)
		if got, ok := sessionOf(fileOf(name)); ok {
			t.Errorf("the file %q is of a session %q", fileOf(name), got)
		}
	}
	files := map[string]string{} // without regard to case, as some file systems have it
	for _, c := range [][2]string{
		{"a", "a.snapshot"}, {"A", "%41.snapshot"}, {"chat-2_b.x", "chat-2_b.x.snapshot"}, {".hidden", "%2ehidden.snapshot"}, {"..", "%2e..snapshot"},
		{"a/b", "a%2fb.snapshot"}, {"100%", "100%25.snapshot"}, {"é", "%c3%a9.snapshot"}, {"two words", "two%20words.snapshot"}, {"x.snapshot", "x.snapshot.snapshot"},
		{strings.Repeat("Ü", MaxName/2), strings.Repeat("%c3%9c", MaxName/2) + ".snapshot"},
	} {
		if got := fileOf(c[0]); got != c[1] || CheckName(c[0]) != nil {
			t.Errorf("session %q has file %q, want %q; %v", c[0], got, c[1], CheckName(c[0]))
		}
		if name, ok := sessionOf(c[1]); !ok || name != c[0] {
			t.Errorf("file %q is of session %q, %v", c[1], name, ok)
		}
		if before, ok := files[strings.ToLower(c[1])]; ok {
			t.Errorf("%q and %q may share a file", before, c[0])
		}
		files[strings.ToLower(c[1])] = c[0]
	}
	for _, file := range []string{"", ".snapshot", "a", "a.SNAPSHOT", "A.snapshot", "%41", "%4.snapshot", "%.snapshot", "%61.snapshot", "%4A.snapshot", "%C3%A9.snapshot",
		"%zz.snapshot", "a b.snapshot", "%ff.snapshot", "é.snapshot", ".hidden.snapshot", "writing-0.tmp", ".lock", strings.Repeat("a", 3*MaxName+1) + ".snapshot"} {
		if name, ok := sessionOf(file); ok {
			t.Errorf("file %q is of session %q, want none", file, name)
		}
	}
}

// The least recently used leave, and never the new one.
func TestMaxBytes(t *testing.T) {
	folders(t, func(t *testing.T, folder FS) {
		one := stateOf(t, ours, count(4), 1)
		size := int64(len(one))
		s := mustOpen(t, folder, Options{MaxBytes: 3 * size})
		if err := unusedFile(folder, "notes.txt"); err != nil {
			t.Fatal(err)
		}
		has := func(want ...string) {
			t.Helper()
			entries, err := s.List()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("sessions by use: %v, want %v", got, want)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			mustPut(t, s, name, one)
			tick(folder)
		}
		has("c", "b", "a")
		contentOf(t, s, "a") // uses it
		tick(folder)
		mustPut(t, s, "d", one)
		has("d", "a", "c")
		tick(folder)
		if got, err := s.Longest([]snapshot.Fingerprint{ours}, count(9)); err != nil || got.Name != "d" && got.Name != "a" && got.Name != "c" {
			t.Errorf("found %+v, %v", got, err)
		} else if err := got.Close(); err != nil {
			t.Error(err)
		}
		tick(folder)
		mustPut(t, s, "c", stateOf(t, ours, count(10), 2)) // larger, in place of the old one
		entries, err := s.List()
		if err != nil || entries[0].Name != "c" || entries[0].Positions != 10 || len(entries) != 2 {
			t.Errorf("%+v, %v", entries, err)
		}
		tick(folder)
		whole := stateOf(t, ours, count(30), 3)
		s = mustOpen(t, folder, Options{MaxBytes: int64(len(whole))})
		mustPut(t, s, "e", whole)
		has("e")
		s = mustOpen(t, folder, Options{MaxBytes: int64(len(whole)) - 1})
		has("e") // nothing is removed until one is put
		wantKind(t, s.Put(context.Background(), "e", inPieces(whole)), ErrTooLarge, "e")
		has("e")
		mustPut(t, s, "f", one)
		has("f")
		if files, err := folder.List(); err != nil || !slices.ContainsFunc(files, func(f FileInfo) bool { return f.Name == "notes.txt" }) {
			t.Errorf("a foreign file is gone: %v, %v", files, err)
		}
	})
}

// A clock that was put back does not make the new session the oldest.
func TestMaxBytesByAnotherClock(t *testing.T) {
	folder := &process{disk: newDisk()}
	one := stateOf(t, ours, count(4), 1)
	s := mustOpen(t, folder, Options{MaxBytes: 2 * int64(len(one))})
	mustPut(t, s, "a", one)
	mustPut(t, s, "b", one)
	folder.seen[fileOf("a")].used, folder.seen[fileOf("b")].used = 1_000_000, 2_000_000
	mustPut(t, s, "c", one)
	if all := contents(t, s); len(all) != 2 || all["b"] == nil || all["c"] == nil {
		t.Errorf("%d sessions are left, b %v, c %v", len(all), all["b"] != nil, all["c"] != nil)
	}
}

// To look at a session is no use of it: it goes first nevertheless.
func TestPeek(t *testing.T) {
	folder := &process{disk: newDisk()}
	one := stateOf(t, ours, count(4), 1)
	s := mustOpen(t, folder, Options{MaxBytes: 2 * int64(len(one))})
	for _, name := range []string{"a", "b"} {
		mustPut(t, s, name, one)
		tick(folder)
	}
	got, err := s.Peek("a")
	if err != nil || len(got.Seal.Tokens) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := got.Close(); err != nil {
		t.Error(err)
	}
	tick(folder)
	mustPut(t, s, "c", one)
	_, err = s.Peek("a")
	wantKind(t, err, ErrNone, "a")
}

func unusedFile(folder FS, name string) error {
	f, err := folder.Create(name)
	if err == nil {
		_, err = f.Write(make([]byte, 100_000))
		err = errors.Join(err, f.Close())
	}
	return err
}

// Longest is what a search through all tokens of all sessions finds.
func TestLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	folder := &process{disk: newDisk()}
	s := mustOpen(t, folder, Options{})
	random := func(n int) []int32 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = rng.Int32N(2)
		}
		return ids
	}
	type saved struct {
		of     snapshot.Fingerprint
		tokens []int32
	}
	sessions := map[string]saved{}
	found, none := 0, 0
	for range 400 {
		name := fmt.Sprint("s", rng.IntN(20))
		of := []snapshot.Fingerprint{ours, theirs}[rng.IntN(2)]
		switch {
		case rng.IntN(4) > 0 || len(sessions) == 0:
			tokens := random(rng.IntN(7))
			mustPut(t, s, name, stateOf(t, of, tokens, rng.Uint64()))
			sessions[name] = saved{of, tokens}
		case rng.IntN(2) == 0:
			if _, ok := sessions[name]; ok {
				if err := s.Remove(context.Background(), name); err != nil {
					t.Fatal(err)
				}
				delete(sessions, name)
			}
		default:
			s = mustOpen(t, folder, Options{}) // which has to learn anew
		}
		query := random(rng.IntN(9))
		wanted := [][]snapshot.Fingerprint{{ours}, {theirs}, {ours, theirs}}[rng.IntN(3)]
		want := 0
		for _, other := range sessions {
			if n := len(other.tokens); slices.Contains(wanted, other.of) && n <= len(query) && slices.Equal(other.tokens, query[:n]) {
				want = max(want, n)
			}
		}
		got, err := s.Longest(wanted, query)
		if want == 0 {
			none++
			wantKind(t, err, ErrNone, "")
			continue
		}
		found++
		if err != nil {
			t.Fatal(err)
		}
		if got.Positions != want || !slices.Contains(wanted, got.Fingerprint) || !slices.Equal(got.Seal.Tokens, query[:want]) {
			t.Fatalf("for %v found %+v, want %d tokens", query, got.Entry, want)
		}
		if err := got.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d searches found the longest prefix, %d that there is none", found, none)
	if found < 100 || none < 20 {
		t.Error("that is too few of one kind")
	}
}

// Hashes that agree by accident, and files that another process replaced since they were looked at,
// cost a look.
func TestLongestComparesTokens(t *testing.T) {
	folder := &process{disk: newDisk()}
	s := mustOpen(t, folder, Options{})
	mustPut(t, s, "short", stateOf(t, ours, count(2), 1))
	mustPut(t, s, "lies", stateOf(t, ours, []int32{1, 2, 9}, 1))
	if _, err := s.List(); err != nil {
		t.Fatal(err)
	}
	k := s.known[fileOf("lies")]
	k.hash = hashOf(count(3))
	s.known[fileOf("lies")] = k
	got, err := s.Longest([]snapshot.Fingerprint{ours}, count(5))
	if err != nil || got.Name != "short" || got.Positions != 2 {
		t.Errorf("found %+v, %v", got, err)
	}
	if names := candidates([]known{k}, []snapshot.Fingerprint{ours}, count(5)); len(names) != 1 {
		t.Errorf("candidates %v, want the session with the wrong hash", names)
	}
	// It changes behind the store's back, and keeps size, time and ID.
	n := folder.seen[fileOf("short")]
	n.content = stateOf(t, ours, []int32{7, 8}, 1)
	got, err = s.Longest([]snapshot.Fingerprint{ours}, count(5))
	wantKind(t, err, ErrNone, "")
	if got != nil {
		t.Errorf("found %+v", got.Entry)
	}
}

// Seals that were read are not read again.
func TestLongestRemembers(t *testing.T) {
	folder := &process{disk: newDisk()}
	s := mustOpen(t, folder, Options{})
	for i := range 10 {
		mustPut(t, s, fmt.Sprint(i), stateOf(t, ours, count(i+1), 1))
	}
	reads := func() int {
		n := 0
		for _, op := range folder.trail {
			if op == "read" {
				n++
			}
		}
		folder.trail = nil
		return n
	}
	var each []int
	for range 3 {
		reads()
		if _, err := s.Longest([]snapshot.Fingerprint{ours}, []int32{5}); !errors.Is(err, ErrNone) {
			t.Fatal(err)
		}
		each = append(each, reads())
	}
	if each[0] == 0 || each[1] != 0 || each[2] != 0 {
		t.Errorf("searches read %v times, want the first alone to read", each)
	}
}

// What is no regular file is no session, and nobody waits for it.
func TestOddFiles(t *testing.T) {
	path := t.TempDir()
	folder, err := Dir(path)
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, folder, Options{})
	content := stateOf(t, ours, count(3), 1)
	mustPut(t, s, "real", content)
	for _, err := range []error{
		os.Mkdir(s.Path("folder"), 0o700), os.Symlink(s.Path("real"), s.Path("link")), syscall.Mkfifo(s.Path("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"folder", "link", "pipe"} {
		if got, err := s.Get(name); err == nil || !errors.As(err, new(*Error)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if all := contents(t, s); len(all) != 1 || !bytes.Equal(all["real"], content) {
		t.Errorf("%d sessions", len(all))
	}
	if e, ok := errors.AsType[*Error](s.Put(context.Background(), "folder", inPieces(content))); !ok || e.Kind != nil || e.Err == nil {
		t.Errorf("over a folder: %v", e)
	}
	mustPut(t, s, "link", content) // takes the link's place, not that of what it leads to
	mustPut(t, s, "pipe", content)
	if all := contents(t, s); len(all) != 3 || len(leftovers(t, folder)) != 0 {
		t.Errorf("%d sessions, left behind %v", len(all), leftovers(t, folder))
	}
	for _, bad := range []string{s.Path("real"), s.Path("real") + "/below"} {
		_, err := Dir(bad)
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != ErrFolder || e.Path != bad {
			t.Errorf("a folder at %s: %v", bad, err)
		}
	}
}
