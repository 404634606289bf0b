package server

import (
	"context"
	"errors"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Alive reports whether the engines that are in memory answer before ctx ends; the error names one
// that does not. It is for whoever would restart the program then.
func (s *Server) Alive(ctx context.Context) error {
	for i := range s.o.Models {
		m := &s.o.Models[i]
		e := m.engine()
		if e == nil {
			continue
		}
		if _, err := e.Stats(ctx); err != nil && !errors.Is(err, moeflux.ErrClosed) {
			return fmt.Errorf("the engine of %s does not answer: %w", m.Name, err)
		}
	}
	return nil
}
