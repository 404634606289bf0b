package moeflux

import "github.com/moeflux/moeflux-actor/actors"

// The operations of requests, as OpenTelemetry's conventions for generative AI name them.
const (
	operationChat = "chat"
	operationText = "text_completion"
)

// begin tells a traced engine of the request, and makes what the request asks of it the request's.
func (g *generation) begin() {
	s := actors.CallStart{
		Operation: operationText, Model: g.m.Info().Name, MaxTokens: g.r.MaxTokens, Stops: g.r.Stop,
		Temperature: g.r.Sampling.Temperature, TopP: g.r.Sampling.TopP, Seed: g.r.Sampling.Seed,
	}
	if g.kind == sessionChat {
		s.Operation = operationChat
	}
	if k := g.r.Sampling.TopK; k != nil {
		s.TopK = *k
	}
	g.ctx, g.call = g.m.engine.BeginCall(g.ctx, s)
}

// over tells it what became of the request.
func (g *generation) over(err error) {
	g.call.End(actors.CallEnd{
		InputTokens: len(g.prompt.IDs), CachedTokens: g.reused, OutputTokens: len(g.newIDs), Finish: string(g.reason), Account: g.account, Err: err,
	})
}
