package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Magic begins every file of records. Version is that of the format: a file of another version is
// refused, since its records mean something else. Every change of a record, of the meta or of what
// they mean has a version of its own; testdata has a file of each (TestVersion).
//
//   - 1: while the format was made, with fields that came and went
//   - 2: a layer of several that the device computed in one go may have a Submission of its own
//   - 4: an expert host may have computed a use (Away)
//   - 5: what expert hosts have said (Answer)
//   - 6: slots may lie on several devices (SlotParts, Borders)
//   - 7: work is that of one of several devices (Submission.Device), which work side by side
//   - 8: a device with memory of its own may have read an expert in the host's (Far)
const (
	Magic   = "moeflux-records\n"
	Version = 8
)

// A file is Magic, a header of two 32-bit numbers (version, bytes of the meta), the meta as JSON,
// and chunks: a table's number and the size of a record (16 bits each), a number of records (32
// bits), and the records. Everything is little-endian. A chunk of table chunkForgotten has one
// 64-bit number for each table instead: the records that are missing before this place.
const (
	chunkForgotten = 0xffff
	maxMeta        = 16 << 20
	maxChunk       = 1 << 20 // records
)

// Writer writes a file of records piece by piece.
type Writer struct {
	w       *bufio.Writer
	cursors []Cursor // of the tables
	told    []uint64 // missing records that the file says
	written uint64
}

// NewWriter begins a file.
func NewWriter(w io.Writer, m Meta) (*Writer, error) {
	meta, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f := &Writer{w: bufio.NewWriterSize(w, 1<<16), cursors: make([]Cursor, len(tables)), told: make([]uint64, len(tables))}
	head := binary.LittleEndian.AppendUint32([]byte(Magic), Version)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(meta)))
	if _, err := f.w.Write(append(head, meta...)); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return f, nil
}

// Drain writes what the log has got since the last call.
func (f *Writer) Drain(l *Log) error {
	var err error
	for i, t := range tables {
		t.drain(l, &f.cursors[i], func(records any, n int) {
			if err == nil && n > 0 {
				err = f.chunk(i, records, n)
			}
		})
	}
	if err == nil {
		err = f.forgotten()
	}
	if err == nil {
		err = f.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// Flush writes out what was given to the writer.
func (f *Writer) Flush() error { return f.w.Flush() }

// Missed returns how many records were forgotten before they could be written.
func (f *Writer) Missed() (n uint64) {
	for _, c := range f.cursors {
		n += c.Missed
	}
	return n
}

// Written returns how many records were written. After an error the last of them may not be there.
func (f *Writer) Written() uint64 { return f.written }

func (f *Writer) chunk(i int, records any, n int) error {
	head := binary.LittleEndian.AppendUint16(nil, uint16(i))
	head = binary.LittleEndian.AppendUint16(head, uint16(binary.Size(records)/n))
	head = binary.LittleEndian.AppendUint32(head, uint32(n))
	if _, err := f.w.Write(head); err != nil {
		return err
	}
	f.written += uint64(n)
	if raw := tables[i].raw(records); raw != nil {
		_, err := f.w.Write(raw)
		return err
	}
	return binary.Write(f.w, binary.LittleEndian, records)
}

// forgotten writes how many records are missing, if that has changed.
func (f *Writer) forgotten() error {
	more := make([]uint64, len(f.cursors))
	sum := uint64(0)
	for i, c := range f.cursors {
		more[i] = c.Missed - f.told[i]
		f.told[i] = c.Missed
		sum += more[i]
	}
	if sum == 0 {
		return nil
	}
	head := binary.LittleEndian.AppendUint16(nil, chunkForgotten)
	head = binary.LittleEndian.AppendUint16(head, 8)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(more)))
	if _, err := f.w.Write(head); err != nil {
		return err
	}
	return binary.Write(f.w, binary.LittleEndian, more)
}

// Write writes a recording as a file.
func (r *Recording) Write(w io.Writer) error {
	f, err := NewWriter(w, r.Meta)
	if err != nil {
		return err
	}
	for i, t := range tables {
		records, n := t.of(r)
		for from := 0; from < n; from += maxChunk {
			if err := f.chunk(i, t.part(records, from, min(n, from+maxChunk)), min(n, from+maxChunk)-from); err != nil {
				return fmt.Errorf("record: %w", err)
			}
		}
		f.cursors[i].Missed = r.Forgotten[t.name]
	}
	if err := f.forgotten(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := f.w.Flush(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// ReadRecording reads a file of records. If it ends amid its records, what is whole is returned,
// and the recording is Cut.
func ReadRecording(r io.Reader) (*Recording, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	rec, err := readHead(in)
	if err != nil {
		return nil, err
	}
	for {
		switch err := rec.readChunk(in); {
		case err == io.EOF:
			return rec, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			rec.Cut = true
			return rec, nil
		case err != nil:
			return nil, err
		}
	}
}

func readHead(in *bufio.Reader) (*Recording, error) {
	head := make([]byte, len(Magic)+8)
	if _, err := io.ReadFull(in, head); err != nil || string(head[:len(Magic)]) != Magic {
		return nil, errors.New("record: this is not a file of records")
	}
	if v := binary.LittleEndian.Uint32(head[len(Magic):]); v != Version {
		return nil, fmt.Errorf("record: the file was written by version %d of the format, and this program reads version %d: use the program that wrote it", v, Version)
	}
	size := binary.LittleEndian.Uint32(head[len(Magic)+4:])
	if size > maxMeta {
		return nil, fmt.Errorf("record: the file is damaged: its head says that it is %d bytes long", size)
	}
	meta, rec := make([]byte, size), new(Recording)
	if _, err := io.ReadFull(in, meta); err != nil {
		return nil, errors.New("record: the file ends in its head")
	}
	if err := json.NewDecoder(bytes.NewReader(meta)).Decode(&rec.Meta); err != nil {
		return nil, fmt.Errorf("record: the head of the file is damaged: %w", err)
	}
	return rec, nil
}

// readChunk reads the next chunk; io.EOF says that there is none.
func (r *Recording) readChunk(in *bufio.Reader) error {
	head := make([]byte, 8)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	number, size := int(binary.LittleEndian.Uint16(head)), int(binary.LittleEndian.Uint16(head[2:]))
	n := binary.LittleEndian.Uint32(head[4:])
	if n > maxChunk || uint64(n)*uint64(size) > math.MaxInt32 {
		return fmt.Errorf("record: the file is damaged: a chunk says that it has %d records", n)
	}
	if number == chunkForgotten {
		missing := make([]uint64, n)
		if err := binary.Read(in, binary.LittleEndian, missing); err != nil {
			return cutShort(err)
		}
		for i, n := range missing[:min(len(missing), len(tables))] {
			r.forgotten(tables[i].name, n)
		}
		return nil
	}
	if number >= len(tables) { // of a later program
		_, err := io.CopyN(io.Discard, in, int64(n)*int64(size))
		return cutShort(err)
	}
	t := tables[number]
	if want := t.bytes(); size != want {
		return fmt.Errorf("record: the file is damaged: its records of table %q have %d bytes and not %d", t.name, size, want)
	}
	// Read in pieces: a damaged number must not make much memory.
	for left := int(n); left > 0; {
		records := t.make(min(left, 4096))
		if err := binary.Read(in, binary.LittleEndian, records); err != nil {
			return cutShort(err)
		}
		t.append(r, records)
		left -= min(left, 4096)
	}
	return nil
}

// cutShort says that a file ends amid a chunk.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
