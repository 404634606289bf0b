package stages

// RoutePlan is what a layer's routing decided for the rows of a step. It is immutable.
type RoutePlan struct {
	TopK    int
	Picks   []int32   // [rows, TopK], heaviest first; ties have the lower expert first
	Weights []float32 // [rows, TopK], what multiplies each pick's output
	Waves   []Wave
}

// Wave is the experts that one submission computes.
type Wave struct {
	Uses []ExpertUse // ascending by expert
}

// ExpertUse is one expert of a wave and who wants it.
type ExpertUse struct {
	Expert int32
	Pairs  []int32 // row·TopK + pick, ascending
}
