package hub

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
)

// PartSuffix follows a file's name until it is whole.
const PartSuffix = ".incomplete"

// Local is the name that a file has in the folder where it is fetched to: the last part of its own.
func (f File) Local() string { return path.Base(f.Name) }

// Have returns how many bytes of a file are in a folder, of an earlier call of Fetch.
func Have(dir *os.Root, f File) int64 {
	for _, name := range []string{f.Local(), f.Local() + PartSuffix} {
		if info, err := dir.Lstat(name); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

// Remove removes a file, whole or not, from a folder. It may be gone already.
func Remove(dir *os.Root, f File) error {
	for _, name := range []string{f.Local(), f.Local() + PartSuffix} {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &WriteError{File: name, Err: err}
		}
	}
	return nil
}

// Fetch puts a file into a folder, unless it is there, and goes on with what an earlier call left.
// note, if not nil, is told often how many bytes of it are there, and first what an earlier call
// left. The file is durable when Fetch returns. A file that comes damaged is fetched once more from
// its beginning.
//
// Errors: *AccessError, *NotFoundError, *StatusError, *DamagedError, *WriteError, the cause of
// ctx's end, or those of the network.
func (c *Checkout) Fetch(ctx context.Context, f File, dir *os.Root, note func(have int64)) error {
	d := &download{checkout: c, file: f, dir: dir, note: note}
	if note == nil {
		d.note = func(int64) {}
	}
	if ok, err := d.there(ctx); ok || err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := d.run(ctx)
		var damaged *DamagedError
		if !errors.As(err, &damaged) {
			return err
		}
		if err := Remove(dir, f); err != nil {
			return err
		}
		if attempt == 2 {
			return damaged
		}
		if waiting := c.client.config.Waiting; waiting != nil {
			waiting(fmt.Errorf("%s came damaged, and is fetched again", f.Local()), 0)
		}
	}
}

// Begin returns the first n bytes of a file, or all if it has fewer.
func (c *Checkout) Begin(ctx context.Context, f File, n int64) ([]byte, error) {
	n = min(n, f.Size)
	if n <= 0 {
		return nil, nil
	}
	var raw []byte
	err := c.client.again(ctx, func(ctx context.Context, alive func()) (bool, error) {
		resp, err := c.client.get(ctx, c.asked(f), c.address(f), fmt.Sprintf("bytes=0-%d", n-1))
		if err != nil {
			return false, err
		}
		defer resp.Body.Close() // also if there is more, of a server that knows no ranges
		raw = make([]byte, n)
		if _, err := io.ReadFull(&watched{Reader: resp.Body, alive: alive}, raw); err != nil {
			return false, &transient{err: fmt.Errorf("%s: %w", f.Name, err)}
		}
		return false, nil
	})
	return raw, err
}

func (c *Checkout) asked(f File) Asked { return Asked{Repo: c.Repo, Revision: c.Commit, File: f.Name} }

func (c *Checkout) address(f File) *url.URL {
	return c.client.url(c.Repo+"/resolve/"+c.Commit+"/"+f.Name, "")
}

// download is a file on its way.
type download struct {
	checkout *Checkout
	file     File
	dir      *os.Root
	note     func(int64)

	part *os.File
	hash hash.Hash // of what is there
	have int64     // bytes of it
}

// there reports whether the file is there, whole and right. One that is not is removed.
func (d *download) there(ctx context.Context) (bool, error) {
	name := d.file.Local()
	f, err := d.dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &WriteError{File: name, Err: err}
	}
	defer f.Close()
	d.hash, d.have = d.file.hash(), 0
	if info, err := f.Stat(); err == nil && info.Size() == d.file.Size {
		if err := d.read(ctx, f); err != nil {
			return false, err
		}
	}
	if d.have == d.file.Size && d.sum() == d.file.Sum() {
		return true, nil
	}
	return false, Remove(d.dir, d.file)
}

// read hashes what is there already.
func (d *download) read(ctx context.Context, r io.Reader) error {
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buf)
		d.hash.Write(buf[:n])
		d.have += int64(n)
		switch {
		case err == io.EOF:
			d.note(d.have)
			return nil
		case err != nil:
			return &WriteError{File: d.file.Local(), Err: err}
		}
	}
}

func (d *download) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// run fetches what is missing, and gives the file its name.
func (d *download) run(ctx context.Context) (err error) {
	name := d.file.Local() + PartSuffix
	if d.part, err = d.dir.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return &WriteError{File: name, Err: err}
	}
	defer d.part.Close()
	if err := d.begin(ctx); err != nil {
		return err
	}
	if d.have < d.file.Size {
		if err := d.checkout.client.again(ctx, d.attempt); err != nil {
			return err
		}
	}
	if got := d.sum(); got != d.file.Sum() {
		return &DamagedError{File: d.file.Local(), Want: d.file.Sum(), Got: got}
	}
	return d.finish(name)
}

// begin takes over what an earlier call left. What is longer than the file is of no use.
func (d *download) begin(ctx context.Context) error {
	d.hash, d.have = d.file.hash(), 0
	info, err := d.part.Stat()
	if err == nil && info.Size() > d.file.Size {
		err = d.part.Truncate(0)
	}
	if err != nil {
		return &WriteError{File: d.file.Local(), Err: err}
	}
	return d.read(ctx, d.part)
}

// attempt asks for what is missing and takes what comes.
func (d *download) attempt(ctx context.Context, alive func()) (progress bool, err error) {
	before := d.have
	byteRange := ""
	if d.have > 0 {
		byteRange = fmt.Sprintf("bytes=%d-", d.have)
	}
	resp, err := d.checkout.client.get(ctx, d.checkout.asked(d.file), d.checkout.address(d.file), byteRange)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	skip, err := d.offset(resp)
	if err != nil {
		return false, &transient{err: err}
	}
	body := &watched{Reader: resp.Body, alive: alive}
	if _, err := io.CopyN(io.Discard, body, skip); err != nil {
		return false, &transient{err: err}
	}
	err = d.take(body)
	return d.have > before, err
}

// offset returns how much of an answer is there already: nothing if it begins where it should, all
// if the server knows no ranges. It fails if the answer is of another file.
func (d *download) offset(resp *http.Response) (skip int64, err error) {
	var first, last, total int64
	switch {
	case resp.StatusCode == http.StatusOK:
		if n := resp.ContentLength; n >= 0 && n != d.file.Size {
			return 0, fmt.Errorf("%s has %d bytes there, not the %d of the list", d.file.Name, n, d.file.Size)
		}
		return d.have, nil
	default:
		said := resp.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(said, "bytes %d-%d/%d", &first, &last, &total); err != nil || first != d.have || last != d.file.Size-1 || total != d.file.Size {
			return 0, fmt.Errorf("%s: asked for bytes %d-%d of %d, was given %q", d.file.Name, d.have, d.file.Size-1, d.file.Size, said)
		}
		return 0, nil
	}
}

// take writes what comes behind what is there.
func (d *download) take(body io.Reader) error {
	buf := make([]byte, 1<<20)
	for d.have < d.file.Size {
		n, err := body.Read(buf[:min(int64(len(buf)), d.file.Size-d.have)])
		if _, err := d.part.WriteAt(buf[:n], d.have); err != nil {
			return &WriteError{File: d.file.Local(), Err: err}
		}
		d.hash.Write(buf[:n])
		d.have += int64(n)
		d.note(d.have)
		if err != nil && d.have < d.file.Size {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return &transient{err: fmt.Errorf("%s was cut after %d of %d bytes: %w", d.file.Name, d.have, d.file.Size, err)}
		}
	}
	return nil
}

// finish makes the file durable under its name.
func (d *download) finish(part string) error {
	err := d.part.Sync()
	if err == nil {
		err = d.dir.Rename(part, d.file.Local())
	}
	if err == nil {
		err = syncDir(d.dir)
	}
	if err != nil {
		return &WriteError{File: d.file.Local(), Err: err}
	}
	return nil
}

// syncDir makes names in a folder durable.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
