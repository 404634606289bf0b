// Package tracing makes spans of an engine's records (package record), after the fact.
//
// Nothing on the way of a token knows of spans. The stages note what they do, always. An [Emitter],
// in a goroutine that nobody waits for, reads those notes with cursors of its own, keeps what
// belongs to requests whose caller's span is sampled, and emits a tree when a step is over:
//
//	chat MODEL               a call of the root package; see [Calls]
//	    moeflux.eval         a request for rows (stages.EvalChunk), from its arrival to its answer
//	        moeflux.wait         it waited for memory, a lane, its turn, ...
//	        moeflux.step         rows that pass the layers together; of several requests, one span
//	            moeflux.layer        dispatch is sent BeginLayer   -> the sequencer handles LayerRetired
//	                moeflux.wait       the step waited for a credit, for room, ...
//	                moeflux.mix        dispatch handles BeginLayer -> it sends PicksReady
//	                moeflux.route      the router handles PicksReady
//	                moeflux.expert_io  expert-IO handles LayerRouted -> it sends the last WaveResident
//	                    moeflux.read     an expert is asked for    -> it is in its slot
//	                    moeflux.away     a host is asked for some  -> it has answered, or will not
//	                moeflux.experts    dispatch handled WaveResident -> combine handles TicketDone
//	                moeflux.retire     combine handles TicketDone  -> expert-IO is sent SlotsReleased
//	            moeflux.prefetch     a hint                        -> its last read has ended
//	                moeflux.read
//	            moeflux.head         dispatch handles ReadLogits   -> it sends LogitsReady
//
// A step that several sampled requests share hangs below the first of them and has links to the
// others; their spans have links to it. A span whose records are incomplete is left out; nothing is
// guessed. Steps during which records were forgotten say how many.
//
// Spans and attributes are listed in table.go, which docs/trace.md prints. The package knows the
// OpenTelemetry API only. Exporting the spans is up to the provider, which tracing/export makes.
package tracing
