package expertfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// SumsName is the file, beside the layer files, that holds a checksum of every record.
const SumsName = "records.crc32c"

// sumsMagic begins that file; the last byte is the version.
const sumsMagic = "MFXCRCS1"

// maxSumsBytes bounds how much of it is read. No model needs as much.
const maxSumsBytes = 64 << 20

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sums is the CRC32C of all records of a model, by layer and expert. All layers have the same
// number.
type Sums map[int][]uint32

// SumError reports a record whose bytes differ from those that were packed.
type SumError struct{ Want, Got uint32 }

func (e *SumError) Error() string {
	return fmt.Sprintf("the bytes differ from those that were packed (CRC32C %#08x, expected %#08x): disk, bus or memory is failing, or the file was changed",
		e.Got, e.Want)
}

// SumsError reports checksums of records that cannot be used.
type SumsError struct {
	Path string
	Why  string
	Err  error // cause, if another error is one
}

func (e *SumsError) Error() string { return fmt.Sprintf("expertfile: %s: %s", e.Path, e.Why) }
func (e *SumsError) Unwrap() error { return e.Err }

// SumWriter passes bytes on and computes checksums of records of one size.
type SumWriter struct {
	W      io.Writer // nil passes nothing on
	Record int       // bytes of a record
	Sums   []uint32  // of the complete records

	crc uint32
	at  int // in the record
}

// Write takes the next bytes, which may be parts of records.
func (s *SumWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), s.Record-s.at)
		s.crc = crc32.Update(s.crc, castagnoli, rest[:n])
		if s.at += n; s.at == s.Record {
			s.Sums = append(s.Sums, s.crc)
			s.crc, s.at = 0, 0
		}
		rest = rest[n:]
	}
	if s.W == nil {
		return len(p), nil
	}
	return s.W.Write(p)
}

// SumRecords returns the checksums of the records of a layer file.
func SumRecords(path string, record int) ([]uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("expertfile: %w", err)
	}
	defer f.Close()
	s := SumWriter{Record: record}
	if _, err := io.CopyBuffer(struct{ io.Writer }{&s}, struct{ io.Reader }{f}, make([]byte, 1<<20)); err != nil {
		return nil, fmt.Errorf("expertfile: %w", err)
	}
	if s.at != 0 {
		return nil, fmt.Errorf("expertfile: %s: %d bytes after the last record of %d", path, s.at, record)
	}
	return s.Sums, nil
}

// Encode returns the content of the file.
func (s Sums) Encode(recordBytes int) []byte {
	var layers []int
	experts := 0
	for l, sums := range s {
		layers, experts = append(layers, l), len(sums)
	}
	slices.Sort(layers)
	out := append([]byte(nil), sumsMagic...)
	for _, n := range []int{recordBytes, experts, len(layers)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	for _, l := range layers {
		out = binary.LittleEndian.AppendUint32(out, uint32(l))
		for _, sum := range s[l] {
			out = binary.LittleEndian.AppendUint32(out, sum)
		}
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

// sumsHead is how many bytes come before the first layer: magic, size of a record, experts of a
// layer, layers.
const sumsHead = len(sumsMagic) + 3*4

// parseSums reads the content of the file, which must belong to the model in f.
func (f *File) parseSums(raw []byte) (Sums, error) {
	word := func(at int) int { return int(binary.LittleEndian.Uint32(raw[at:])) }
	want := sumsHead + len(f.layers)*4*(1+f.experts) + 4
	if len(raw) < sumsHead+4 || string(raw[:len(sumsMagic)]) != sumsMagic {
		return nil, errors.New("does not begin like checksums of records")
	}
	body := raw[:len(raw)-4]
	if got := crc32.Checksum(body, castagnoli); int(got) != word(len(body)) {
		return nil, errors.New("is damaged: its own checksum does not match")
	}
	record, experts, layers := word(len(sumsMagic)), word(len(sumsMagic)+4), word(len(sumsMagic)+8)
	if record != f.layout.Bytes || experts != f.experts || layers != len(f.layers) || len(raw) != want {
		return nil, fmt.Errorf("belongs to another model: %d layers of %d records of %d bytes, expected %d of %d of %d",
			layers, experts, record, len(f.layers), f.experts, f.layout.Bytes)
	}
	sums := Sums{}
	for at, i := sumsHead, 0; i < layers; i++ {
		layer := word(at)
		if layer != f.layers[i] {
			return nil, fmt.Errorf("belongs to another model: it has layer %d, expected %d", layer, f.layers[i])
		}
		at += 4
		for range experts {
			sums[layer] = append(sums[layer], uint32(word(at)))
			at += 4
		}
	}
	return sums, nil
}

// LoadSums reads the checksums of the records for CheckRecord. It must be called before the first
// CheckRecord. The error is a *SumsError, which wraps fs.ErrNotExist if the model has no checksums.
func (f *File) LoadSums() error {
	if f.spread != nil {
		return &SumsError{Path: f.spread.files[0].path, Why: "files of this form have no checksums of records", Err: fs.ErrNotExist}
	}
	if len(f.layers) == 0 {
		return &SumsError{Why: "the model has no layer with experts"}
	}
	path := filepath.Join(filepath.Dir(f.Path(f.layers[0])), SumsName)
	raw, err := readBounded(path)
	if err == nil {
		f.sums, err = f.parseSums(raw)
	}
	if err != nil {
		return &SumsError{Path: path, Why: err.Error(), Err: err}
	}
	return nil
}

// readBounded reads a file of at most maxSumsBytes.
func readBounded(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, maxSumsBytes+1))
	if err == nil && len(raw) > maxSumsBytes {
		err = fmt.Errorf("is longer than %d bytes", maxSumsBytes)
	}
	return raw, err
}

// CheckRecord compares the bytes of a record with its checksum. It may be called from many
// goroutines. The error is a *ReadError with a *SumError. Without checksums it returns nil.
func (f *File) CheckRecord(layer, expert int, record []byte) error {
	sums := f.sums[layer]
	if expert < 0 || expert >= len(sums) {
		return nil
	}
	got := crc32.Checksum(record, castagnoli)
	if got == sums[expert] {
		return nil
	}
	size := f.layout.Bytes
	return &ReadError{
		Path: f.Path(layer), Layer: layer, Expert: expert, OffsetBytes: int64(expert) * int64(size), WantLen: size, GotLen: len(record),
		Err: &SumError{Want: sums[expert], Got: got},
	}
}
