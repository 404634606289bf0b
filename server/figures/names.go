package figures

// The figures of the server, as OpenTelemetry names them. As Prometheus text a point is an
// underscore, a unit comes behind the name, and _total behind what only grows. Those that begin
// with moeflux have the suffixes of vLLM's, so that a dashboard for it needs one replacement;
// those that begin with gen_ai are of the semantic conventions for generative AI, version 1.41.0.
//
// No attribute has a value that a client can choose: models and keys are those of the Options,
// hosts those of engines, and beyond MostKeys keys are access.Others.
const (
	attrModel  = "model_name"
	attrKey    = "key"
	attrRoute  = "route"
	attrCode   = "code"
	attrReason = "reason"
	attrFinish = "finished_reason"
	attrFound  = "found"
	attrTable  = "table"
	attrHost   = "host" // the address of an expert host

	attrOperation     = "gen_ai.operation.name"
	attrProvider      = "gen_ai.provider.name"
	attrRequestModel  = "gen_ai.request.model"
	attrResponseModel = "gen_ai.response.model"
	attrTokenType     = "gen_ai.token.type"
	attrError         = "error.type"
)

// MostKeys bounds the values of the attribute key; all further ones are access.Others.
const MostKeys = 100

// The limits of buckets. Those of the conventions go on where experts that stream make times long.
var (
	firstTokenBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 320}
	tokenTimeBuckets  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	durationBuckets   = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36}
	tokenCountBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
