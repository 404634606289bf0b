// Package tracing turns what the stages did into spans, after the fact.
//
// While a traced step runs, each stage's shell writes one fixed Record for each message into a Ring
// of its own, without a lock, an allocation or a span. When the step has ended, the records of all
// rings go to a Replayer. It finds the pairs of records that begin and end a span, and emits one
// tree of spans under the caller's span, with the recorded times:
//
//	moeflux.eval             what one step evaluates of a chunk, from the first message to the last
//	    moeflux.layer        dispatch is sent BeginLayer    -> the sequencer handles LayerRetired
//	        moeflux.mix        dispatch handles BeginLayer    -> it sends PicksReady
//	        moeflux.route      the router handles PicksReady
//	        moeflux.expert_io  expert-IO handles LayerRouted  -> it sends the last WaveResident
//	        moeflux.experts    dispatch handled WaveResident  -> combine handles TicketDone; one a wave
//	        moeflux.retire     combine handles TicketDone     -> it sends SlotsReleased; one a wave
//	    moeflux.prefetch     expert-IO handles PrefetchExperts -> it handles the hint's last ExpertsRead;
//	                         one a hint, linked to the layer that the hint is for
//	    moeflux.head         dispatch handles ReadLogits    -> it sends LogitsReady
//
// A span whose records are incomplete is left out; nothing is guessed. The eval says how many
// records did not fit into the rings.
//
// What an eval counts is its caller's: the experts that the rows of this caller picked. The spans
// below it describe the whole step, which may have rows of other callers too.
//
// Names of spans are in replay.go, keys of attributes in keys.go. The package knows the
// OpenTelemetry API only. Exporting the spans is up to the provider, which tracing/export makes.
package tracing
