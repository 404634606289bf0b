package sequencer

// Layers with a window keep the last positions of a text, so a sequence can be cut where all is
// still there that the next row attends to. What is kept is whole pages, which come again where the
// next page is begun: so there is always a window, and most of the time up to a page more.

// keepWindow notes that a sequence holds another state. Whoever froze or stored that, a window of
// it is there; of what may be there before that nobody knows.
func (c *Core) keepWindow(s *sequence) { s.first = max(0, s.Len-c.cfg.Window+1) }

// slideWindow notes that a sequence has come to its length by further rows: pages were overwritten.
func (c *Core) slideWindow(s *sequence) {
	s.first = max(s.first, c.book.Count(s.Len)*c.cfg.PageRows-c.cfg.WindowRows)
}

// reaches reports whether a sequence that is not poisoned can be cut to a position and go on there.
func (c *Core) reaches(s *sequence, pos int) bool {
	if pos == s.Len || c.cfg.RecurrentBytes == 0 {
		return true
	}
	return c.cfg.Window > 0 && pos > 0 && s.first <= max(0, pos-c.cfg.Window+1)
}
