package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// Put stores what write writes, a sealed snapshot with its token ids, as the session of this name,
// replacing any that has it. Whatever fails, or kills the process, the session is completely the
// old one or the new one; once Put has returned nil it is the new one, even after a loss of power.
// The Kind of the error is ErrName, ErrDiskFull, ErrTooLarge, or ErrDamaged if what was written is
// not a session, or one of the two that say "stored". If write fails, the cause is its error. When
// ctx ends, so does the writing.
func (s *Store) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	d, err := s.begin(ctx)
	if err != nil {
		return s.fail("save", name, nil, err)
	}
	defer d.release()
	if err = d.fill(ctx, s.max, write); err == nil {
		err = s.publish(ctx, d, name)
	}
	if err == nil {
		return nil
	}
	err = s.fail("save", name, nil, err)
	if d.renamed {
		return err
	}
	if left := s.fs.Remove(d.name); left != nil && !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return err
}

// draft is a temporary file that is being written.
type draft struct {
	name    string
	file    WriteFile
	release func() // gives up the lock that shows that the writer is alive
	renamed bool
}

// begin makes a temporary file under a name that is free once leftovers are gone.
func (s *Store) begin(ctx context.Context) (*draft, error) {
	release, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.sweep(); err != nil {
		return nil, err
	}
	d := &draft{}
	for n := 0; ; n++ {
		d.name = writingName(n)
		if d.file, err = s.fs.Create(d.name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if d.release, err = s.fs.TryLock(d.name); err != nil {
		return nil, errors.Join(err, d.file.Close(), s.fs.Remove(d.name))
	}
	return d, nil
}

// fill writes the content, makes it durable, and checks that it is a session. It closes the file in
// any case.
func (d *draft) fill(ctx context.Context, most int64, write func(io.Writer) error) error {
	w := &limited{ctx: ctx, w: d.file, most: most}
	err := write(w)
	n, failed := w.written()
	if failed != nil {
		err = failed // whatever write made of it
	}
	if err == nil {
		err = d.file.Sync()
	}
	if err == nil {
		_, err = sealOf(d.file, n)
	}
	if closed := d.file.Close(); err == nil { // after another failure it has nothing to add
		err = closed
	}
	return err
}

// publish gives the file its name and removes sessions that no longer fit.
func (s *Store) publish(ctx context.Context, d *draft, name string) error {
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := s.fs.Rename(d.name, fileOf(name)); err != nil {
		return err
	}
	d.renamed = true
	if err := s.fs.Sync(); err != nil {
		return &Error{Kind: ErrUnsettled, Err: err}
	}
	if err := s.makeRoom(name); err != nil {
		return &Error{Kind: ErrNoRoom, Err: err}
	}
	return nil
}

// makeRoom removes the least recently used sessions, until the rest is small enough, but never the
// one to keep. The folder is locked, so the files removed are those listed. After a loss of power
// they may be back, and are removed next time.
func (s *Store) makeRoom(keep string) error {
	if s.max <= 0 {
		return nil
	}
	all, err := s.sessions()
	if err != nil {
		return err
	}
	var total int64
	for _, e := range all {
		total += e.Bytes
	}
	for i := len(all) - 1; i >= 0 && total > s.max; i-- {
		if all[i].Name == keep {
			continue
		}
		if err := s.fs.Remove(all[i].file.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= all[i].Bytes
	}
	return nil
}

// limited counts what is written and ends it when it becomes too much or ctx ends. A Write that
// hangs may be left behind.
type limited struct {
	ctx  context.Context
	w    io.Writer
	most int64

	mu  sync.Mutex // guards the rest
	n   int64
	err error // the first
}

func (l *limited) Write(p []byte) (int, error) {
	if err := l.fits(len(p)); err != nil {
		return 0, err
	}
	n, err := l.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.err = l.n+int64(n), err
	return n, err
}

// fits reports, as an error, why n bytes more are not written.
func (l *limited) fits(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if l.err = context.Cause(l.ctx); l.err == nil && l.most > 0 && l.n+int64(n) > l.most {
		l.err = &Error{Kind: ErrTooLarge, Err: fmt.Errorf("more than %d bytes", l.most)}
	}
	return l.err
}

// written returns the number of bytes, and what has failed.
func (l *limited) written() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n, l.err
}
