package recorder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

func meta() record.Meta { return record.Meta{Program: "test", Stages: []string{"sequencer"}} }

// config is that of a recorder of a fresh log, whose warnings the test reads.
func config(bytes int) (Config, *testenv.Log) {
	said := new(testenv.Log)
	return Config{
		Log: record.NewLog(bytes), Meta: meta, Every: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, said
}

func start(t *testing.T, c Config) *Recorder {
	t.Helper()
	r, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, path string) *record.Recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := record.ReadRecording(f)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// until waits for something that another goroutine does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s has not happened", what)
		}
	}
}

// The file has every record, though the log holds but a part of them at a time.
func TestFile(t *testing.T) {
	c, said := config(1 << 16)
	c.File = filepath.Join(t.TempDir(), "all.records")
	r := start(t, c)
	const n = 20_000
	for i := range uint64(n) {
		c.Log.Handled.Add(record.Handled{Step: i})
		if i%100 == 0 { // the log holds some 480
			until(t, "the writing of a record", func() bool { return r.Stats().Written >= int64(i)-300 })
		}
	}
	c.Log.Levels.Add(record.Level{AtNS: 5})
	r.Close()
	rec := read(t, c.File)
	if rec.Meta.Program != "test" || rec.Meta.Reason != "record" || rec.Meta.Written.IsZero() || rec.Cut || rec.Forgotten != nil {
		t.Errorf("the file says %+v, cut %v, missing %v", rec.Meta, rec.Cut, rec.Forgotten)
	}
	if len(rec.Handled) != n || len(rec.Levels) != 1 {
		t.Fatalf("%d messages and %d levels, want %d and 1", len(rec.Handled), len(rec.Levels), n)
	}
	for i, h := range rec.Handled {
		if h.Step != uint64(i) {
			t.Fatalf("record %d is of step %d", i, h.Step)
		}
	}
	if s := r.Stats(); s.Written != n+1 || s.Lost != 0 || said.String() != "" {
		t.Errorf("figures %+v, said %q", s, said)
	}
}

// What the log forgets before it is read is counted, in the file too.
func TestFileForgets(t *testing.T) {
	c, said := config(1 << 16)
	c.File, c.Every = filepath.Join(t.TempDir(), "all.records"), time.Hour
	r := start(t, c)
	for i := range uint64(5000) {
		c.Log.Handled.Add(record.Handled{Step: i})
	}
	r.Close()
	rec := read(t, c.File)
	if s := r.Stats(); s.Lost == 0 || s.Lost+s.Written != 5000 || int64(len(rec.Handled)) != s.Written || int64(rec.Forgotten["handled"]) != s.Lost {
		t.Errorf("figures %+v; the file has %d records and says that %v are missing", s, len(rec.Handled), rec.Forgotten)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "is not whole") {
		t.Errorf("said %q", got)
	}
}

// limited is a file on a disk with room for some bytes.
type limited struct {
	bytes.Buffer
	room int
}

func (w *limited) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	w.Buffer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (w *limited) Close() error { return nil }

// A full disk ends the file. That is said once, what is lost is counted, and what is whole can be
// read.
func TestFileFullDisk(t *testing.T) {
	for _, room := range []int{0, 10, 500, 5000} {
		c, said := config(1 << 20)
		disk := &limited{room: room}
		c.File, c.open = "x", func(string) (io.WriteCloser, error) { return disk, nil }
		r := start(t, c)
		for i := range uint64(300) {
			c.Log.Handled.Add(record.Handled{Step: i})
			if i%50 == 0 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		r.Close()
		if s := r.Stats(); s.Lost == 0 || s.Lost+s.Written != 300 {
			t.Errorf("room for %d bytes: figures %+v", room, s)
		}
		if got := said.String(); strings.Count(got, "cannot be written") != 1 || strings.Count(got, "\n") != 2 || !strings.Contains(got, "no space left") {
			t.Errorf("room for %d bytes: said %q", room, got)
		}
		if room < 1000 {
			continue
		}
		rec, err := record.ReadRecording(bytes.NewReader(disk.Bytes()))
		if err != nil || !rec.Cut || int64(len(rec.Handled)) < r.Stats().Written || len(rec.Handled) > 100 {
			t.Errorf("room for %d bytes: %v; %d records can be read, cut %v", room, err, len(rec.Handled), rec.Cut)
		}
	}
}

// hanging is a file on a disk that answers when it is let.
type hanging struct {
	*os.File
	let chan struct{}
}

func (w *hanging) Write(p []byte) (int, error) {
	<-w.let
	return w.File.Write(p)
}

// A disk that hangs holds nobody up. That is said once, and the file goes on when the disk does.
func TestFileHungDisk(t *testing.T) {
	c, said := config(1 << 16)
	path, let := filepath.Join(t.TempDir(), "all.records"), make(chan struct{})
	c.File, c.hung, c.open = path, 20*time.Millisecond, func(string) (io.WriteCloser, error) {
		f, err := os.Create(path)
		return &hanging{f, let}, err
	}
	r := start(t, c)
	for i := range uint64(10_000) {
		c.Log.Handled.Add(record.Handled{Step: i})
	}
	until(t, "the warning", func() bool { return strings.Contains(said.String(), "not being written") })
	time.Sleep(50 * time.Millisecond)
	close(let)
	until(t, "the writing", func() bool { return r.Stats().Written > 0 })
	c.Log.Handled.Add(record.Handled{Step: 10_000})
	r.Close()
	rec, s := read(t, path), r.Stats()
	if last := rec.Handled[len(rec.Handled)-1].Step; last != 10_000 || s.Lost == 0 || s.Lost+s.Written != 10_001 || int64(rec.Forgotten["handled"]) != s.Lost {
		t.Errorf("figures %+v; the last record is of step %d, missing %v", s, last, rec.Forgotten)
	}
	if got := said.String(); strings.Count(got, "not being written") != 1 || strings.Count(got, "\n") != 2 {
		t.Errorf("said %q", got)
	}
}

// What cannot be made is an error at the start.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{File: dir}, {File: filepath.Join(dir, "no", "file")}, {Flight: Flight{Dir: file}}, {Flight: Flight{Dir: filepath.Join(file, "in")}}} {
		c.Log, c.Meta = record.NewLog(1<<16), meta
		if r, err := Start(c); err == nil {
			r.Close()
			t.Errorf("%+v: no error", c)
		}
	}
	c, _ := config(1 << 16)
	r := start(t, c)
	if _, err := r.Dump(context.Background(), "why not"); !errors.Is(err, ErrNoFolder) {
		t.Errorf("a dump without a folder: %v", err)
	}
	r.Close()
}

// A file that may not grow ends with whole records, below its bound, and says once how many are
// missing.
func TestFileIsBounded(t *testing.T) {
	c, said := config(1 << 16)
	c.File, c.FileBytes = filepath.Join(t.TempDir(), "all.records"), 300_000
	r := start(t, c)
	const n = 10_000
	for i := range uint64(n) {
		c.Log.Handled.Add(record.Handled{Step: i})
		if i%100 == 0 {
			until(t, "the writing of a record", func() bool { s := r.Stats(); return s.Written+s.Lost >= int64(i)-300 })
		}
	}
	r.Close()
	s, rec := r.Stats(), read(t, c.File)
	if int64(len(rec.Handled)) != s.Written || rec.Cut || s.Written == 0 || s.Written+s.Lost != n {
		t.Errorf("the file has %d records, cut %v; figures %+v of %d", len(rec.Handled), rec.Cut, s, n)
	}
	if info, err := os.Stat(c.File); err != nil || info.Size() > c.FileBytes || info.Size() < c.FileBytes/4 {
		t.Errorf("a file of at most %d bytes: %v, %v", c.FileBytes, info, err)
	}
	if text := said.String(); strings.Count(text, "as large as it may be") != 1 || strings.Count(text, "is not whole") != 1 {
		t.Errorf("said %q", text)
	}
}
