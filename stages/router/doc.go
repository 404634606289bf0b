// Package router is the stage that turns a layer's picks into a plan, and predicts picks.
//
// Dispatch sends it what the device has picked for each row of a layer (PicksReady). The router
// sorts the picks by expert into a RoutePlan and sends that to expert-IO (LayerRouted). It predicts
// the picks of layers to come from three kinds of evidence: what the row before picked in the same
// layer; the scores of the layer's router for the router input one or two layers before; or both.
// Each predicted expert has a chance, which is how often guesses with such evidence were right
// before. The router sends the likeliest ones as hints (PrefetchExperts). It owns the predictions
// of each sequence and layer.
//
//	core.go        messages; plans; learning
//	hint.go        which layers get hints, and when
//	predictor.go   the three kinds of evidence
//	experience.go  how often each kind was right
//
// To add a message, add a case to Core.Step; package stages has the other steps.
package router
