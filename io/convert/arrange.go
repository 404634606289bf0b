package convert

import (
	"io"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// arranger writes one array of a matrix in panels. It is given the rows in order, in pieces of any
// size.
type arranger struct {
	w      io.Writer
	format quant.Format
	cols   int
	array  quant.Part
	part   []byte // of the next panel; never a whole one between calls
	out    []byte
}

// arrangedBytes is about how many bytes are arranged before they are written.
const arrangedBytes = 1 << 20

// begin prepares for the array that b describes. It reuses memory.
func (a *arranger) begin(w io.Writer, b block) {
	a.w, a.format, a.cols, a.array, a.part = w, b.format, b.src.m.cols, b.array, a.part[:0]
}

// panelBytes is the size of a panel of the array.
func (a *arranger) panelBytes() int { return a.format.PartBytes(a.array, quant.PanelRows, a.cols) }

// Write arranges all panels that p completes.
func (a *arranger) Write(p []byte) (int, error) {
	panel, total := a.panelBytes(), len(p)
	if len(a.part) > 0 {
		n := min(panel-len(a.part), len(p))
		a.part, p = append(a.part, p[:n]...), p[n:]
		if len(a.part) < panel {
			return total, nil
		}
		if err := a.write(a.part, 1); err != nil {
			return 0, err
		}
		a.part = a.part[:0]
	}
	most := max(1, arrangedBytes/panel)
	for len(p) >= panel {
		n := min(most, len(p)/panel)
		if err := a.write(p[:n*panel], n); err != nil {
			return 0, err
		}
		p = p[n*panel:]
	}
	a.part = append(a.part, p...)
	return total, nil
}

// write writes n panels, arranged on all processors.
func (a *arranger) write(rows []byte, n int) error {
	if cap(a.out) < len(rows) {
		a.out = make([]byte, len(rows))
	}
	out, panel := a.out[:len(rows)], a.panelBytes()
	err := parallel(n, panelsAWorker, func(lo, hi int) error {
		a.format.ToPanels(a.array, out[lo*panel:hi*panel], rows[lo*panel:hi*panel], (hi-lo)*quant.PanelRows, a.cols)
		return nil
	})
	if err == nil {
		_, err = a.w.Write(out)
	}
	return err
}

// panelsAWorker is how many panels are worth a goroutine.
const panelsAWorker = 4
