package actors

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// checkedReads compares what a source reads with the checksums of the records. It runs on the
// pool's workers, which check several records at once and read a damaged one again.
type checkedReads struct {
	readpool.Source
	file    *expertfile.File
	corrupt atomic.Int64 // reads whose bytes do not match
}

// ReadExpert reads and checks. After an error dst is undefined.
func (c *checkedReads) ReadExpert(layer, expert int, dst []byte) error {
	if err := c.Source.ReadExpert(layer, expert, dst); err != nil {
		return err
	}
	err := c.file.CheckRecord(layer, expert, dst)
	if err != nil {
		c.corrupt.Add(1)
	}
	return err
}

// source returns what the pool reads from.
func (e *Engine) source(cfg Config) (readpool.Source, error) {
	src := readpool.Source(e.experts)
	if cfg.WrapReads != nil {
		src = cfg.WrapReads(src)
	}
	if cfg.VerifyReads == VerifyOff || e.info.ExpertIO == ExpertIOMmap {
		return src, nil
	}
	switch err := e.experts.LoadSums(); {
	case err == nil:
	case cfg.VerifyReads == VerifyOn:
		return nil, err
	// packed by another program, or before there were checksums
	case errors.Is(err, fs.ErrNotExist):
		e.log.Info("expert reads are not verified: the model has no checksums of its records")
		return src, nil
	default:
		e.log.Warn("expert reads are not verified", "error", err)
		return src, nil
	}
	e.checked = &checkedReads{Source: src, file: e.experts}
	e.info.VerifyReads = true
	return e.checked, nil
}
