package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
)

const (
	magic      = "MFXUSES1" // the last byte is the version
	headerSize = len(magic) + sha256.Size + 4 + 4 + 4
	// maxFile is the size of the largest possible profile.
	maxFile = headerSize + 4*MaxKeys + sha256.Size
)

// ErrForeign reports a profile of another model.
var ErrForeign = errors.New("it belongs to another model")

// FileError reports a profile that cannot be used.
type FileError struct {
	Path string
	Err  error // fs.ErrNotExist, ErrForeign, or what is wrong with the file
}

func (e *FileError) Error() string { return fmt.Sprintf("profile: %s: %v", e.Path, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// Path returns the path of a model's profile in a folder.
func Path(dir string, of fingerprint.Fingerprint) string {
	return filepath.Join(dir, of.String()[:32]+".uses")
}

// Load reads the profile of a model with the given layers and experts. The error is a *FileError.
// Without a profile the engine only starts slower, so callers log it and go on.
func Load(path string, of fingerprint.Fingerprint, layers, experts int) (*Profile, error) {
	p, err := load(path, of)
	if err == nil && (p.Layers != layers || p.Experts != experts) {
		err = fmt.Errorf("it has %d layers of %d experts, the model has %d of %d: %w", p.Layers, p.Experts, layers, experts, ErrForeign)
	}
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return p, nil
}

func load(path string, of fingerprint.Fingerprint) (*Profile, error) {
	s, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	if !s.Mode().IsRegular() || s.Size() > int64(maxFile) {
		return nil, fmt.Errorf("it must be a regular file of at most %d bytes, not %v of %d bytes", maxFile, s.Mode().Type(), s.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, int64(maxFile)+1))
	if err != nil {
		return nil, reason(err)
	}
	got, p, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if got != of {
		return nil, fmt.Errorf("%w: its fingerprint is %.16s, the model's %.16s", ErrForeign, got, of)
	}
	return p, nil
}

// reason removes the path from an error, since FileError names it.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}

// parse reads a file's content. It allocates only after the length has proved to match the header.
func parse(raw []byte) (of fingerprint.Fingerprint, p *Profile, err error) {
	if len(raw) < headerSize+sha256.Size {
		return of, nil, fmt.Errorf("it is truncated: %d bytes", len(raw))
	}
	if string(raw[:len(magic)]) != magic {
		return of, nil, fmt.Errorf("it begins with %q instead of %q", raw[:len(magic)], magic)
	}
	h := raw[len(magic):]
	copy(of[:], h)
	h = h[len(of):]
	layers, experts, rows := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
	if layers > MaxKeys || experts > MaxKeys {
		return of, nil, fmt.Errorf("its header claims %d layers of %d experts", layers, experts)
	}
	if err := checkSize(int(layers), int(experts)); err != nil {
		return of, nil, err
	}
	if rows > Horizon {
		return of, nil, fmt.Errorf("it counts %d rows, at most %d are possible", rows, Horizon)
	}
	keys := int(layers) * int(experts)
	if want := headerSize + 4*keys + sha256.Size; len(raw) != want {
		return of, nil, fmt.Errorf("it has %d bytes instead of %d for %d layers of %d experts", len(raw), want, layers, experts)
	}
	body, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return of, nil, errors.New("its checksum is wrong")
	}
	p = &Profile{Layers: int(layers), Experts: int(experts), Rows: rows, Uses: make([]uint32, keys)}
	for k := range p.Uses {
		p.Uses[k] = binary.LittleEndian.Uint32(body[headerSize+4*k:])
		if p.Uses[k] > rows {
			return of, nil, fmt.Errorf("it says that %d of %d rows used expert %d of layer %d", p.Uses[k], rows, k%p.Experts, k/p.Experts)
		}
	}
	return of, p, nil
}

// encode returns a file's content.
func (p *Profile) encode(of fingerprint.Fingerprint) []byte {
	raw := make([]byte, 0, headerSize+4*len(p.Uses)+sha256.Size)
	raw = append(raw, magic...)
	raw = append(raw, of[:]...)
	for _, n := range []int{p.Layers, p.Experts, int(p.Rows)} {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(n))
	}
	for _, n := range p.Uses {
		raw = binary.LittleEndian.AppendUint32(raw, n)
	}
	sum := sha256.Sum256(raw)
	return append(raw, sum[:]...)
}

// Save writes the profile of a model. It replaces an existing file, all or nothing, and creates the
// folder if necessary. The error is a *FileError.
func (p *Profile) Save(path string, of fingerprint.Fingerprint) error {
	err := durable.MkdirAll(filepath.Dir(path), durable.Shared)
	if err == nil {
		err = durable.WriteFile(path, durable.Shared, p.encode(of))
	}
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	return nil
}

// Update merges the counts of some rows, [layers, experts], into the profile of a model and saves
// it. A profile that cannot be read is replaced. If two processes update at once, the rows of one
// may be lost.
func Update(path string, of fingerprint.Fingerprint, layers, experts int, rows int64, uses []int64) error {
	p, err := Load(path, of, layers, experts)
	if err != nil {
		if p, err = New(layers, experts); err != nil {
			return err
		}
	}
	if err := p.Merge(rows, uses); err != nil {
		return err
	}
	return p.Save(path, of)
}
