package parking

import (
	"bytes"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// guarded is an image that is used only while the store is open. Its memory is the engine's again
// when the store is closed.
type guarded struct {
	s *Store
	Image
}

func (g guarded) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	return g.use(func() error { return g.Image.ReadRows(layer, p, first, dst) })
}

func (g guarded) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	return g.use(func() error { return g.Image.WriteRows(layer, p, first, src) })
}

func (g guarded) use(image func() error) error {
	g.s.using.RLock()
	defer g.s.using.RUnlock()
	if g.s.closed {
		return stages.ErrClosed
	}
	return image()
}

// write takes a state: to host memory if there is room, else to a file.
func (s *Store) write(p stages.Park) error {
	how := snapshot.WriteOptions{Positions: len(p.Tokens), Seal: new(snapshot.Seal)}
	size, err := snapshot.Size(s.cfg.Shape, how)
	if err != nil {
		return err
	}
	e, src := &entry{id: p.ID, size: size}, guarded{s, s.cfg.Image(p.Memory)}
	if full := s.reserve(size); full == nil {
		if e.mem, err = newBlock(size); err == nil {
			_, err = snapshot.Encode(e.mem, s.cfg.Shape, src, how)
		}
		if err != nil {
			s.release(e)
			return err
		}
	} else if s.folder == nil {
		return full
	} else if e.file, err = s.folder.write(p.ID, func(w io.Writer) error {
		_, err := snapshot.Write(w, s.cfg.Shape, src, how)
		return err
	}); err != nil {
		return err
	}
	s.put(e)
	return nil
}

// read fills a state, with a second try: the bytes are compared with their checksum.
func (s *Store) read(p stages.Park) error {
	e, err := s.take(p.ID)
	if err != nil {
		return err
	}
	defer s.giveBack(e)
	if err = s.fill(e, p); err != nil {
		s.cfg.Log.Warn("a parked state is read a second time", "error", err)
		err = s.fill(e, p)
	}
	return err
}

func (s *Store) fill(e *entry, p stages.Park) error {
	var in io.ReaderAt
	if e.mem != nil {
		in = bytes.NewReader(e.mem)
	} else {
		f, err := e.file.open()
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	state, err := snapshot.Open(in, e.size, s.cfg.Shape, snapshot.ReadOptions{})
	if err != nil {
		return err
	}
	if n := state.Positions(); n != len(p.Tokens) {
		return fmt.Errorf("a parked state has %d positions, but %d were parked", n, len(p.Tokens))
	}
	return state.Fill(guarded{s, s.cfg.Image(p.Memory)})
}
