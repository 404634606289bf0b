package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// ScopeName is the instrumentation scope of all spans.
const ScopeName = "github.com/moeflux/moeflux-actor/tracing"

// The names of spans. The package comment says when each begins and ends. A call is named by its
// operation and model.
const (
	SpanEval     = "moeflux.eval"
	SpanStep     = "moeflux.step"
	SpanLayer    = "moeflux.layer"
	SpanMix      = "moeflux.mix"
	SpanRoute    = "moeflux.route"
	SpanExpertIO = "moeflux.expert_io"
	SpanExperts  = "moeflux.experts"
	SpanRetire   = "moeflux.retire"
	SpanPrefetch = "moeflux.prefetch"
	SpanRead     = "moeflux.read"
	SpanAway     = "moeflux.away"
	SpanHead     = "moeflux.head"
	SpanWait     = "moeflux.wait"
	SpanSequence = "moeflux.sequence" // of Replay alone
	spanCall     = "OPERATION MODEL"  // stands for calls in the table
)

// The keys of all attributes. The table says what they mean, and of which spans.
const (
	KeyOperation    = semconv.GenAIOperationNameKey
	KeyProvider     = semconv.GenAIProviderNameKey
	KeyModel        = semconv.GenAIRequestModelKey
	KeyMaxTokens    = semconv.GenAIRequestMaxTokensKey
	KeyTemperature  = semconv.GenAIRequestTemperatureKey
	KeyTopK         = semconv.GenAIRequestTopKKey
	KeyTopP         = semconv.GenAIRequestTopPKey
	KeySeed         = semconv.GenAIRequestSeedKey
	KeyStops        = semconv.GenAIRequestStopSequencesKey
	KeyFinish       = semconv.GenAIResponseFinishReasonsKey
	KeyFirstToken   = semconv.GenAIResponseTimeToFirstChunkKey
	KeyInputTokens  = semconv.GenAIUsageInputTokensKey
	KeyCachedTokens = semconv.GenAIUsageCacheReadInputTokensKey
	KeyOutputTokens = semconv.GenAIUsageOutputTokensKey
	KeyError        = semconv.ErrorTypeKey

	KeyExactness = attribute.Key("moeflux.exactness")
	KeyQueueNS   = attribute.Key("moeflux.queue_ns")
	KeyOutcome   = attribute.Key("moeflux.outcome")

	KeyRequest    = attribute.Key("moeflux.request")
	KeySeq        = attribute.Key("moeflux.seq")
	KeyPos        = attribute.Key("moeflux.pos")
	KeyRows       = attribute.Key("moeflux.rows")
	KeyDecodeRows = attribute.Key("moeflux.decode_rows")
	KeyRequests   = attribute.Key("moeflux.requests")
	KeyStep       = attribute.Key("moeflux.step")
	KeyUrgent     = attribute.Key("moeflux.urgent")
	KeyLayer      = attribute.Key("moeflux.layer")
	KeyLayerKind  = attribute.Key("moeflux.layer_kind")
	KeyMoreLayers = attribute.Key("moeflux.more_layers")
	KeyWave       = attribute.Key("moeflux.wave")
	KeyWaves      = attribute.Key("moeflux.waves")
	KeyExperts    = attribute.Key("moeflux.experts")
	KeyExpert     = attribute.Key("moeflux.expert")
	KeySlot       = attribute.Key("moeflux.slot")

	KeyHits       = attribute.Key("moeflux.hits")
	KeyMisses     = attribute.Key("moeflux.misses")
	KeyBytesRead  = attribute.Key("moeflux.bytes_read")
	KeyBytesAhead = attribute.Key("moeflux.bytes_ahead")

	KeyPicksHit    = attribute.Key("moeflux.picks_hit")
	KeyPicksLate   = attribute.Key("moeflux.picks_late")
	KeyPicksMissed = attribute.Key("moeflux.picks_missed")
	KeySlotBytes   = attribute.Key("moeflux.slot_bytes")
	KeyHostBytes   = attribute.Key("moeflux.host_bytes")
	KeyDiskBytes   = attribute.Key("moeflux.disk_bytes")

	KeyDeviceNS      = attribute.Key("moeflux.device_ns")
	KeyDeviceQueueNS = attribute.Key("moeflux.device_queue_ns")
	KeyComputeNS     = attribute.Key("moeflux.compute_ns")
	KeyOverlapNS     = attribute.Key("moeflux.overlap_ns")
	KeyDiskWaitNS    = attribute.Key("moeflux.disk_wait_ns")

	KeyTier   = attribute.Key("moeflux.tier")
	KeyBytes  = attribute.Key("moeflux.bytes")
	KeyWanted = attribute.Key("moeflux.wanted_ns")

	KeyHost          = attribute.Key("moeflux.host")
	KeyNetworkNS     = attribute.Key("moeflux.network_ns")
	KeyHostWaitNS    = attribute.Key("moeflux.host_wait_ns")
	KeyHostReadNS    = attribute.Key("moeflux.host_read_ns")
	KeyHostComputeNS = attribute.Key("moeflux.host_compute_ns")

	KeyReason  = attribute.Key("moeflux.reason")
	KeyForStep = attribute.Key("moeflux.for_step")

	KeyLayersAhead      = attribute.Key("moeflux.layers_ahead")
	KeyPrefetchIssued   = attribute.Key("moeflux.prefetch_issued")
	KeyPrefetchDropped  = attribute.Key("moeflux.prefetch_dropped")
	KeyPrefetchDeclined = attribute.Key("moeflux.prefetch_declined")
	KeyPrefetchSkipped  = attribute.Key("moeflux.prefetch_skipped")
	KeyPrefetchPending  = attribute.Key("moeflux.prefetch_pending")
	KeyPrefetchLate     = attribute.Key("moeflux.prefetch_late")

	KeyRecordsLost = attribute.Key("moeflux.records_lost")
)
