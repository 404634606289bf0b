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
)

const (
	magic      = "MFXUSES1" // the last byte is the version
	headerSize = len(magic) + sha256.Size + 4 + 4 + 4
	// maxFile is the size of the largest profile.
	maxFile = headerSize + 4*MaxKeys + sha256.Size
)

// ErrForeign reports a profile of another model.
var ErrForeign = errors.New("it is of another model")

// FileError reports a profile that cannot be used.
type FileError struct {
	Path string
	Err  error // fs.ErrNotExist if there is none, ErrForeign, or what is wrong
}

func (e *FileError) Error() string { return fmt.Sprintf("profile: %s: %v", e.Path, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// Path returns where the profile of a model lies under a folder.
func Path(dir string, of Fingerprint) string { return filepath.Join(dir, of.String()[:32]+".uses") }

// Load reads the profile of a model with so many layers and experts. The error is a *FileError:
// without a profile the engine only starts slower, so callers note it and go on.
func Load(path string, of Fingerprint, layers, experts int) (*Profile, error) {
	p, err := load(path, of)
	if err == nil && (p.Layers != layers || p.Experts != experts) {
		err = fmt.Errorf("it has %d layers of %d experts, the model %d of %d: %w", p.Layers, p.Experts, layers, experts, ErrForeign)
	}
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return p, nil
}

func load(path string, of Fingerprint) (*Profile, error) {
	s, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	if !s.Mode().IsRegular() || s.Size() > int64(maxFile) {
		return nil, fmt.Errorf("%v of %d bytes, want a file of at most %d", s.Mode().Type(), s.Size(), maxFile)
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
		return nil, fmt.Errorf("%w: %.16s, want %.16s", ErrForeign, got, of)
	}
	return p, nil
}

// reason takes the path out of an error that names it, for FileError names it too.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}

// parse reads a file's content and allocates nothing before its length agrees with what it says.
func parse(raw []byte) (of Fingerprint, p *Profile, err error) {
	if len(raw) < headerSize+sha256.Size {
		return of, nil, fmt.Errorf("%d bytes are too few", len(raw))
	}
	if string(raw[:len(magic)]) != magic {
		return of, nil, fmt.Errorf("it begins with %q, want %q", raw[:len(magic)], magic)
	}
	h := raw[len(magic):]
	copy(of[:], h)
	h = h[len(of):]
	layers, experts, rows := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
	if layers > MaxKeys || experts > MaxKeys {
		return of, nil, fmt.Errorf("%d layers of %d experts", layers, experts)
	}
	if err := checkSize(int(layers), int(experts)); err != nil {
		return of, nil, err
	}
	if rows > Horizon {
		return of, nil, fmt.Errorf("%d rows, want at most %d", rows, Horizon)
	}
	keys := int(layers) * int(experts)
	if want := headerSize + 4*keys + sha256.Size; len(raw) != want {
		return of, nil, fmt.Errorf("%d bytes, want %d for %d layers of %d experts", len(raw), want, layers, experts)
	}
	body, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return of, nil, errors.New("its checksum does not agree")
	}
	p = &Profile{Layers: int(layers), Experts: int(experts), Rows: rows, Uses: make([]uint32, keys)}
	for k := range p.Uses {
		p.Uses[k] = binary.LittleEndian.Uint32(body[headerSize+4*k:])
		if p.Uses[k] > rows {
			return of, nil, fmt.Errorf("expert %d of layer %d was used by %d of %d rows", k%p.Experts, k/p.Experts, p.Uses[k], rows)
		}
	}
	return of, p, nil
}

// encode returns a file's content.
func (p *Profile) encode(of Fingerprint) []byte {
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

// Save writes the profile of a model. The file appears whole or not at all, and takes the place of
// one that is there; its folder is made if need be. The error is a *FileError.
func (p *Profile) Save(path string, of Fingerprint) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = durable.Replace(path, func(w io.Writer) error {
			_, err := w.Write(p.encode(of))
			return err
		})
	}
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	return nil
}

// Update merges the counts of so many rows, [layers, experts], into the profile of a model and
// saves it. What cannot be read is replaced. Of two processes that end at once the later one's rows
// may be all that is added.
func Update(path string, of Fingerprint, layers, experts int, rows int64, uses []int64) error {
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
