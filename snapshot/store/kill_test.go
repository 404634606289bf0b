package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// writerVariable makes this binary a writer: folder, number of the writer, first generation, seed,
// most bytes.
const writerVariable = "MOEFLUX_TEST_STORE_WRITER"

func TestMain(m *testing.M) {
	if args := os.Getenv(writerVariable); args != "" {
		if err := writeUntilKilled(args); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

var killed = []string{"one", "two", "three"}

// version is what a writer makes of a session: the content follows from it.
type version struct{ session, writer, generation int }

func (v version) content() ([]byte, error) {
	tokens := count(200 + (v.generation*7919)%4000)
	tokens[0], tokens[1], tokens[2] = int32(v.session), int32(v.writer), int32(v.generation)
	var b bytes.Buffer
	err := writeState(&b, ours, tokens, uint64(v.generation))
	return b.Bytes(), err
}

// writeUntilKilled puts one session after the other and tells before and after each.
func writeUntilKilled(args string) error {
	var path string
	var v version
	var seed uint64
	var most int64
	if _, err := fmt.Sscan(args, &v.writer, &v.generation, &seed, &most, &path); err != nil {
		return err
	}
	folder, err := Dir(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, folder, Options{MaxBytes: most})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for ; ; v.generation++ {
		v.session = rng.IntN(len(killed))
		content, err := v.content()
		if err != nil {
			return err
		}
		fmt.Println("put", v.session, v.generation)
		if err := s.Put(ctx, killed[v.session], inPieces(content)); err != nil {
			return err
		}
		fmt.Println("done", v.session, v.generation)
	}
}

// writer is a process that writes.
type writer struct {
	cmd   *exec.Cmd
	lines chan error // closed after the last; an error is one that should not be

	begun, done [3]int // the last generation of each session
}

func startWriter(t *testing.T, number, generation int, seed uint64, most int64, path string) *writer {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerVariable+"="+fmt.Sprint(number, generation, seed, most, path))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &writer{cmd: cmd, lines: make(chan error, 1)}
	go w.follow(out)
	return w
}

// follow notes what the process tells.
func (w *writer) follow(out io.Reader) {
	defer close(w.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word := bytes.Fields(lines.Bytes())
		if len(word) != 3 || string(word[0]) != "put" && string(word[0]) != "done" {
			w.lines <- errors.New(lines.Text())
			return
		}
		session, _ := strconv.Atoi(string(word[1]))
		generation, _ := strconv.Atoi(string(word[2]))
		if w.begun[session] = generation; string(word[0]) == "done" {
			w.done[session] = generation
		}
	}
}

// kill kills the process and waits for all that it has told.
func (w *writer) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for err := range w.lines {
		t.Errorf("a writer: %v", err)
	}
	err := w.cmd.Wait()
	if s, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() {
		t.Errorf("a writer ended by itself: %v", err)
	}
}

// TestKill kills processes that write, two at a time on the same folder, at random moments. Each
// time the store opens, and each session is exactly the last version that one of the writers told
// to be done, or one that it had begun since.
func TestKill(t *testing.T) {
	rounds := testenv.Rounds(10, 75, 1500)
	most := time.Duration(testenv.Rounds(2, 2, 100)) * time.Second
	for _, c := range []struct {
		name string
		max  int64
	}{{"unbounded", 0}, {"bounded", 150_000}} {
		t.Run(c.name, func(t *testing.T) {
			k := &kills{path: t.TempDir(), max: c.max, rng: rand.New(rand.NewPCG(3, uint64(c.max)))}
			folder, err := Dir(k.path)
			if err != nil {
				t.Fatal(err)
			}
			k.folder, k.store = folder, mustOpen(t, folder, Options{MaxBytes: c.max})
			lacking := func() bool { return k.left == 0 || k.puts == 0 || k.read == 0 }
			for start := time.Now(); k.rounds < rounds && (lacking() || time.Since(start) < most) && !t.Failed(); k.rounds++ {
				k.round(t)
			}
			t.Logf("%d processes killed in %d rounds; %d versions were done, %d leftovers cleaned, %d sessions read meanwhile; after a kill %d sessions were versions done, %d begun only, %d not there",
				2*k.rounds, k.rounds, k.puts, k.left, k.read, k.wereDone, k.wereBegun, k.gone)
			if !testing.Short() && lacking() {
				t.Error("too few of one kind")
			}
		})
	}
}

type kills struct {
	path   string
	max    int64
	folder FS
	store  *Store
	rng    *rand.Rand

	generation int
	// that each session may be, from the rounds before
	last                                                [3][]version
	rounds, puts, left, read, wereDone, wereBegun, gone int
}

// round starts two writers and kills both.
func (k *kills) round(t *testing.T) {
	var writers []*writer
	first := k.generation + 1
	for n := range 2 {
		writers = append(writers, startWriter(t, n, first, k.rng.Uint64(), k.max, k.path))
	}
	until := time.Now().Add(time.Duration(5+k.rng.IntN(60)) * time.Millisecond)
	for time.Now().Before(until) { // others read meanwhile
		if got, err := k.store.Get(killed[k.rng.IntN(3)]); err == nil {
			k.check(t, got)
			k.read++
		} else if !errors.Is(err, ErrNone) {
			t.Errorf("while others write: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	for _, w := range writers {
		w.kill(t)
	}
	k.left += len(leftovers(t, k.folder))
	s := mustOpen(t, k.folder, Options{MaxBytes: k.max})
	if left := leftovers(t, k.folder); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if all, err := s.List(); err != nil || slices.ContainsFunc(all, func(e Entry) bool { return e.Err != nil }) {
		t.Errorf("%+v, %v", all, err)
	}
	for i := range killed {
		k.settle(t, s, i, first, writers)
	}
}

// settle checks what a session is after the writers were killed.
func (k *kills) settle(t *testing.T, s *Store, session, first int, writers []*writer) {
	may := k.last[session]
	for _, w := range writers {
		k.generation = max(k.generation, w.begun[session])
		if w.done[session] >= first { // what was before is over
			may = nil
			k.puts++
		}
	}
	for n, w := range writers {
		for g := max(w.done[session], first); g <= w.begun[session]; g++ {
			may = append(may, version{session, n, g})
		}
	}
	got, err := s.Get(killed[session])
	if errors.Is(err, ErrNone) && (k.max > 0 || len(k.last[session]) == 0 && !slices.ContainsFunc(writers, func(w *writer) bool { return w.done[session] >= first })) {
		k.gone++
		k.last[session] = nil
		return
	}
	if err != nil {
		t.Errorf("session %q: %v", killed[session], err)
		return
	}
	v := k.check(t, got)
	if !slices.Contains(may, v) {
		t.Errorf("session %q is %+v, want one of %v", killed[session], v, may)
	}
	if v.generation >= first && v.generation > writers[v.writer].done[session] {
		k.wereBegun++
	} else {
		k.wereDone++
	}
	k.last[session] = []version{v}
}

// check closes a session and returns its version, whose content it must have to the last byte.
func (k *kills) check(t *testing.T, got *Session) version {
	t.Helper()
	defer got.Close()
	ids := got.Seal.Tokens
	v := version{int(ids[0]), int(ids[1]), int(ids[2])}
	want, err := v.content()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytesOf(t, got), want) || got.Name != killed[v.session] {
		t.Errorf("session %q, version %+v: its %d bytes are others than were put", got.Name, v, got.Bytes)
	}
	return v
}
