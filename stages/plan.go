package stages

// RoutePlan is what a layer's routing decided for the rows of a step. It is immutable from the moment the router sends it
// until the device has finished the layer's last wave.
type RoutePlan struct {
	TopK    int
	Picks   []int32   // [rows, TopK], heaviest first; ties have the lower expert first
	Weights []float32 // [rows, TopK], what multiplies each pick's output
	Waves   []Wave
	// What the waves are slices of, ascending by expert.
	Uses  []ExpertUse
	Pairs []int32
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
