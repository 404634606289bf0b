package tracing

import "go.opentelemetry.io/otel/attribute"

// The keys of all attributes. Times are nanoseconds, sizes bytes.
const (
	// how long the message that begins the span was in the mailbox
	KeyQueueNS = attribute.Key("moeflux.queue_ns")

	KeyStep      = attribute.Key("moeflux.step")
	KeySeq       = attribute.Key("moeflux.seq")
	KeyPos       = attribute.Key("moeflux.pos")
	KeyRows      = attribute.Key("moeflux.rows")
	KeyLayer     = attribute.Key("moeflux.layer")
	KeyLayerKind = attribute.Key("moeflux.layer_kind")
	KeyWave      = attribute.Key("moeflux.wave")

	// Of an eval: of the experts that the caller's own rows picked, each once a layer. An expert
	// that two callers of a step pick counts for both. Of an expert_io: of the layer, for all
	// callers of the step. Bytes are of the reads for the misses.
	KeyHits      = attribute.Key("moeflux.hits")
	KeyMisses    = attribute.Key("moeflux.misses")
	KeyBytesRead = attribute.Key("moeflux.bytes_read")
	// Of an eval: bytes of the speculative reads that hints of the step started, whoever's rows
	// they are for.
	KeyBytesAhead = attribute.Key("moeflux.bytes_ahead")
	// Of an eval: all rows of the step. Everything below the eval is about the whole step.
	KeyStepRows = attribute.Key("moeflux.step_rows")
	// Of an eval, if there are any: records that did not fit into the rings. Spans are missing.
	KeyRecordsLost = attribute.Key("moeflux.records_lost")
	KeyExperts     = attribute.Key("moeflux.experts")
	KeyWaves       = attribute.Key("moeflux.waves")
	// KeyWavesWaited counts the waves of a layer that became resident only when the slots of an
	// earlier wave came home: they waited for a ring credit or for room.
	KeyWavesWaited = attribute.Key("moeflux.waves_waited")

	KeyDeviceNS = attribute.Key("moeflux.device_ns")
	// Of the layer or the head that the span is of; of an eval, of all of these together. If
	// several steps are in flight, what of the time lies inside the span.
	KeyComputeNS = attribute.Key("moeflux.compute_ns") // the device worked for it
	KeyOverlapNS = attribute.Key("moeflux.overlap_ns") // of that, while experts were being read
	// the device had nothing to do because experts of the layer were missing
	KeyDiskWaitNS = attribute.Key("moeflux.disk_wait_ns")

	KeyRingLength = attribute.Key("moeflux.ring_length")

	// Of the experts of a hint that were not in memory: read, and not read because no slot was
	// spare, because chance or time spoke against it, because the layer's speculation was paused.
	KeyPrefetchIssued   = attribute.Key("moeflux.prefetch_issued")
	KeyPrefetchDropped  = attribute.Key("moeflux.prefetch_dropped")
	KeyPrefetchDeclined = attribute.Key("moeflux.prefetch_declined")
	KeyPrefetchSkipped  = attribute.Key("moeflux.prefetch_skipped")
	// layers from the one that the step had come to; more than the layer's number if the hint is
	// for the next step
	KeyLayersAhead = attribute.Key("moeflux.layers_ahead")
	// reads that were under way when the step's records were collected: the span ends there
	KeyPrefetchPending = attribute.Key("moeflux.prefetch_pending")
	// the layer was routed, in this step, before the reads had ended
	KeyPrefetchLate = attribute.Key("moeflux.prefetch_late")
	// further layers that began and retired with this one, on a device that routes by itself
	KeyMoreLayers = attribute.Key("moeflux.more_layers")
)
