package expertmem

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// Verify says whether expert reads are compared with checksums.
type Verify string

// The choices.
const (
	// VerifyAuto compares an expert when it is read first, and every 16th time after that, where
	// the model has checksums of its experts' records.
	VerifyAuto Verify = "auto"
	// VerifyOn compares every read. A model without checksums does not open.
	VerifyOn  Verify = "on"
	VerifyOff Verify = "off"
)

// checkedReads compares what a source reads with the checksums of the records. It runs on the
// pool's workers, which check several records at once and read a damaged one again.
type checkedReads struct {
	readpool.Source
	file    *expertfile.File
	reads   map[int][]atomic.Uint32 // of each layer's experts, since one did not match; nil: all count
	corrupt atomic.Int64            // reads whose bytes do not match
}

// sampleReads is how often an expert that was right once is read until it is compared again. A file
// that was written wrong, or has changed since, shows at the first read. What is left is a disk or
// bus that fails now and then, which fails for others too.
const sampleReads = 16

func newCheckedReads(src readpool.Source, file *expertfile.File, v Verify) *checkedReads {
	c := &checkedReads{Source: src, file: file}
	if v != VerifyOn {
		c.reads = map[int][]atomic.Uint32{}
		for _, layer := range file.Layers() {
			c.reads[layer] = make([]atomic.Uint32, file.Experts())
		}
	}
	return c
}

// ReadExpert reads, and checks if it is this expert's turn. After an error dst is undefined.
func (c *checkedReads) ReadExpert(layer, expert int, dst []byte) error {
	if err := c.Source.ReadExpert(layer, expert, dst); err != nil {
		return err
	}
	reads := c.reads[layer]
	if expert < len(reads) && reads[expert].Add(1)%sampleReads != 1 {
		return nil
	}
	err := c.file.CheckRecord(layer, expert, dst)
	if err != nil {
		c.corrupt.Add(1)
		if expert < len(reads) {
			reads[expert].Store(0)
		}
	}
	return err
}

// source returns what the pool reads from.
func (m *Memory) source() (readpool.Source, error) {
	src := readpool.Source(m.cfg.File)
	if m.cfg.WrapReads != nil {
		src = m.cfg.WrapReads(src)
	}
	has, err := m.HasSums(m.plan.IO)
	if err != nil || !has {
		return src, err
	}
	m.checked = newCheckedReads(src, m.cfg.File, m.cfg.Verify)
	return m.checked, nil
}

// HasSums reports whether records that are read in this way are to be compared with checksums and
// there are any. It is an error that there are none if they must be compared.
func (m *Memory) HasSums(how IO) (bool, error) {
	if m.cfg.Verify == VerifyOff || how == Mmap {
		return false, nil
	}
	switch err := m.cfg.File.LoadSums(); {
	case err == nil:
		return true, nil
	case m.cfg.Verify == VerifyOn:
		return false, err
	// packed by another program, or before there were checksums
	case errors.Is(err, fs.ErrNotExist):
		m.cfg.Log.Info("expert reads are not verified: the model has no checksums of its records")
	default:
		m.cfg.Log.Warn("expert reads are not verified", "error", err)
	}
	return false, nil
}

// Verifies reports whether reads are compared with checksums.
func (m *Memory) Verifies() bool { return m.checked != nil }
