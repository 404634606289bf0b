package stagetest

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
)

// watchedPages is the pages of each state, as far as messages tell: of a model with recurrent
// state, whose sequences are never cut without a copy of one.
type watchedPages struct {
	rows int // positions of a page; 0: nothing is watched
	of   map[stages.StateID][]stages.PageID
}

// copy notes what a state has from now on.
func (w watchedPages) copy(m *stages.CopyState) {
	pages := m.Pages
	if !m.Expose {
		pages = slices.Clone(w.of[m.From])
	}
	if m.Take {
		delete(w.of, m.From)
	}
	w.of[m.To] = pages
}

// begin checks that no page that a step writes to belongs to another state, and that what is copied
// was the writer's.
func (w watchedPages) begin(m *stages.BeginLayer) error {
	if m.Layer > 0 || w.rows == 0 {
		return nil
	}
	for _, g := range m.Batch.Segments {
		id := g.Seq.State()
		if g.Copy.From != g.Copy.To && (!slices.Contains(w.of[id], g.Copy.From) || slices.Index(g.Pages, g.Copy.To) != g.Pos/w.rows) {
			return fmt.Errorf("%v copies %+v for sequence %d at position %d, which had pages %v and gets %v", &m.Step, g.Copy, g.Seq, g.Pos, w.of[id], g.Pages)
		}
		if want := (g.Pos + g.Rows + w.rows - 1) / w.rows; len(g.Pages) != want {
			return fmt.Errorf("%v has %d pages for sequence %d, want %d", &m.Step, len(g.Pages), g.Seq, want)
		}
		for other, pages := range w.of {
			for _, p := range g.Pages[g.Pos/w.rows:] {
				if other != id && slices.Contains(pages, p) {
					return fmt.Errorf("%v writes to page %d of sequence %d at position %d, which state %d has, too", &m.Step, p, g.Seq, g.Pos, other)
				}
			}
		}
		w.of[id] = slices.Clone(g.Pages)
	}
	return nil
}
