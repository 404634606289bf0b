package actors

import (
	"context"

	"github.com/moeflux/moeflux-actor/stages"
)

// Prediction is an expert that a row may pick.
type Prediction = stages.Prediction

// Predictions returns what the engine expects the sequence's next row to pick in a layer, before
// that row is computed: what the row before picked, heaviest first, with chances that experience in
// this layer gives such guesses. PrefetchLastToken and PrefetchBoth read ahead by these; what
// PrefetchNextGate predicts is known only while the row is computed. There are none before the
// first row, and after Reset or ForgetExperts. The error of a layer without a router is a
// *stages.LayerError.
func (s *Sequence) Predictions(ctx context.Context, layer int) ([]Prediction, error) {
	if s.isClosed() {
		return nil, stages.ErrClosed
	}
	a, err := s.e.rt.RequestTo(ctx, stages.Router, func(to stages.Caller) stages.Message {
		return &stages.DescribePredictions{Seq: s.id, Layer: layer, Caller: to}
	}, nil)
	if err != nil {
		return nil, err
	}
	d := a.(*stages.PredictionsDescribed)
	return d.Predictions, d.Err
}
