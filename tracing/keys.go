package tracing

import "go.opentelemetry.io/otel/attribute"

// The keys of all attributes. Times are nanoseconds, sizes bytes.
const (
	// how long the message that begins the span lay in the mailbox
	KeyQueueNS = attribute.Key("moeflux.queue_ns")

	KeyStep      = attribute.Key("moeflux.step")
	KeySeq       = attribute.Key("moeflux.seq")
	KeyPos       = attribute.Key("moeflux.pos")
	KeyRows      = attribute.Key("moeflux.rows")
	KeyLayer     = attribute.Key("moeflux.layer")
	KeyLayerKind = attribute.Key("moeflux.layer_kind")
	KeyWave      = attribute.Key("moeflux.wave")

	KeyHits      = attribute.Key("moeflux.hits")
	KeyMisses    = attribute.Key("moeflux.misses")
	KeyBytesRead = attribute.Key("moeflux.bytes_read")
	KeyExperts   = attribute.Key("moeflux.experts")
	KeyWaves     = attribute.Key("moeflux.waves")
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

	KeyPrefetchIssued  = attribute.Key("moeflux.prefetch_issued")
	KeyPrefetchDropped = attribute.Key("moeflux.prefetch_dropped")
	// the layer was routed before its reads had ended
	KeyPrefetchLate = attribute.Key("moeflux.prefetch_late")
)
