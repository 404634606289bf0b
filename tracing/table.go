package tracing

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Conventions is the version of OpenTelemetry's semantic conventions that gen_ai attributes are of.
// Later ones have moved them elsewhere.
const Conventions = "1.41.0"

// Attribute describes an attribute of spans.
type Attribute struct {
	Key     attribute.Key
	Spans   []string // that may have it
	Meaning string
}

var (
	ofCall    = []string{spanCall}
	ofBoth    = []string{spanCall, SpanEval}
	ofEval    = []string{SpanEval}
	ofStep    = []string{SpanStep}
	ofLayer   = []string{SpanLayer}
	ofInLayer = []string{SpanLayer, SpanMix, SpanRoute, SpanExpertIO, SpanExperts, SpanRetire, SpanPrefetch, SpanRead, SpanAway, SpanWait}
	ofSummed  = []string{SpanStep, SpanLayer, SpanHead}
	ofCounted = []string{SpanStep, SpanExpertIO}
	ofDevice  = []string{SpanMix, SpanExperts, SpanHead}
	ofHint    = []string{SpanPrefetch}
	ofRead    = []string{SpanRead}
	ofAway    = []string{SpanAway}
	ofWait    = []string{SpanWait}
)

// Attributes are all of them.
var Attributes = []Attribute{
	{KeyOperation, ofCall, "`chat` or `text_completion`"},
	{KeyProvider, ofCall, "`moeflux`"},
	{KeyModel, ofCall, "the model's name"},
	{KeyMaxTokens, ofCall, "as asked for; likewise the next five"},
	{KeyTemperature, ofCall, ""},
	{KeyTopK, ofCall, ""},
	{KeyTopP, ofCall, ""},
	{KeySeed, ofCall, ""},
	{KeyStops, ofCall, ""},
	{KeyFinish, ofCall, "why the text ended, as in `End.Reason`"},
	{KeyFirstToken, ofCall, "seconds from the arrival to the first token"},
	{KeyInputTokens, ofCall, "of the prompt"},
	{KeyCachedTokens, ofCall, "of the prompt that were known and not read"},
	{KeyOutputTokens, ofCall, "new tokens"},
	{KeyExactness, ofBoth, "the settings that change results, as in `Info.Exactness`"},
	{KeyError, ofBoth, "what kind of error; absent if there was none"},
	{KeyQueueNS, []string{spanCall, SpanEval, SpanLayer, SpanMix, SpanRoute, SpanExpertIO, SpanExperts, SpanRetire, SpanHead, SpanPrefetch, SpanRead}, "of a call or an eval, from arrivals to first steps; of a read, until a worker took it; else how long the message that begins the span was in line"},
	{KeyOutcome, ofEval, "`answered`, `cancelled`, `refused` or `failed`"},
	{KeyRequest, ofEval, "number of the request; likewise the next two"},
	{KeySeq, []string{SpanEval, SpanSequence}, ""},
	{KeyPos, ofEval, "where it began in its sequence"},
	{KeyRows, []string{SpanEval, SpanStep}, "tokens that pass the layers"},
	{KeyDecodeRows, ofStep, "of the rows, those that are a sequence's next token"},
	{KeyRequests, ofStep, "that share the step"},
	{KeyStep, ofStep, "number of the step"},
	{KeyUrgent, []string{SpanStep, SpanRead}, "goes before what is not"},
	{KeyPicksHit, ofBoth, "the account: picks of an expert that was in memory, one expert of one row each"},
	{KeyPicksLate, ofBoth, "that was being read on a guess"},
	{KeyPicksMissed, ofBoth, "that had to be read, or that the device read in the host's memory"},
	{KeySlotBytes, ofBoth, "bytes of experts that were there; shared with others who needed them"},
	{KeyHostBytes, ofBoth, "bytes that came from the host's memory to a device with its own"},
	{KeyDiskBytes, ofBoth, "bytes from the disk"},
	{KeyBytesAhead, []string{spanCall, SpanEval, SpanStep}, "of these, read on a guess; of a step, bytes of the guesses that it made"},
	{KeyHits, ofCounted, "experts that were in memory or being read, each once a layer"},
	{KeyMisses, ofCounted, "experts that a read began for, or that the device read in the " +
		"host's memory"},
	{KeyBytesRead, ofCounted, "bytes of the reads for the misses"},
	{KeyLayer, ofInLayer, "from 0"},
	{KeyLayerKind, ofLayer, "`full_attention`, `linear_attention`, ..."},
	{KeyMoreLayers, ofLayer, "further layers that the span is of, on a device that routes by itself"},
	{KeyWave, []string{SpanExperts, SpanRetire, SpanWait}, "of the layer, from 0"},
	{KeyWaves, []string{SpanRoute}, "that the layer came to"},
	{KeyExperts, []string{SpanRoute, SpanExperts, SpanAway}, "different experts of the layer, of the wave, or that a host was asked for"},
	{KeyDeviceNS, []string{spanCall, SpanEval, SpanLayer, SpanMix, SpanExperts, SpanHead}, "that the device took, by its own clock; of a call or an eval, its share of the time that the device worked; of a layer, where the device tells of it as a whole"},
	{KeyDeviceQueueNS, ofDevice, "from the submission until the device began"},
	{KeyComputeNS, ofSummed, "the device worked for it; of several devices, all together"},
	{KeyOverlapNS, ofSummed, "of that, while experts were being read"},
	{KeyDiskWaitNS, []string{spanCall, SpanEval, SpanStep, SpanLayer, SpanHead}, "the device had nothing to do because experts were missing; of a call or an eval, its share"},
	{KeyExpert, ofRead, "number within the layer"},
	{KeySlot, ofRead, "that it is read into"},
	{KeyTier, ofRead, "`disk` or `host`"},
	{KeyBytes, ofRead, "0 if it failed"},
	{KeyWanted, ofRead, "from the asking until somebody came to need it; absent if nobody did"},
	{KeyHost, ofAway, "the expert host's address"},
	{KeyNetworkNS, ofAway, "the network, and the programs at both ends of it: what the host does not tell of; absent, as the next three, if it did not answer"},
	{KeyHostWaitNS, ofAway, "by the host's clock, until it began with these experts"},
	{KeyHostReadNS, ofAway, "then, until they were in its memory"},
	{KeyHostComputeNS, ofAway, "then, until they were computed"},
	{KeyReason, ofWait, "`layer_credit`, `wave_credit`, `room`, `lane`, `turn`, `company`, `memory`, `read_credit`, `state`"},
	{KeyForStep, ofWait, "the step that was in the way, if it was one"},
	{KeyLayersAhead, ofHint, "from the layer that the step had come to; more than the layer's number if the hint is for the next step"},
	{KeyPrefetchIssued, ofHint, "experts that are read"},
	{KeyPrefetchDropped, ofHint, "not read since no slot was spare"},
	{KeyPrefetchDeclined, ofHint, "not read since chance or time spoke against it"},
	{KeyPrefetchSkipped, ofHint, "not read since the layer's speculation was paused"},
	{KeyPrefetchPending, ofHint, "reads that had not ended when the span was made"},
	{KeyPrefetchLate, ofHint, "an expert was needed before its read had ended"},
	{KeyRecordsLost, []string{SpanEval, SpanStep}, "records that were forgotten while the step was in flight: spans are missing; of an eval, that of its end"},
}

// Table returns the attributes as a table in Markdown, in lines.
func Table() []string {
	lines := []string{"| attribute | of | meaning |", "| --- | --- | --- |"}
	for _, a := range Attributes {
		of := make([]string, len(a.Spans))
		for i, s := range a.Spans {
			of[i] = strings.TrimPrefix(s, "moeflux.")
			if s == spanCall {
				of[i] = "call"
			}
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", a.Key, strings.Join(of, ", "), a.Meaning))
	}
	return lines
}
