package stages

// RoutePlan is what a layer's routing decided for the rows of a step. It is immutable from the
// moment the router sends it until the device has finished the layer's last wave. Its experts are
// computed in waves, which expert-IO makes of what is in memory.
type RoutePlan struct {
	TopK    int
	Picks   []int32     // [rows, TopK], heaviest first; ties have the lower expert first
	Weights []float32   // [rows, TopK], what multiplies each pick's output
	Uses    []ExpertUse // ascending by expert
	Pairs   []int32     // what the uses' Pairs are slices of
	// [rows, hidden], what the experts are applied to; empty unless expert hosts are asked
	Inputs []float32
	// sequences whose rows could not be routed; their picks are arbitrary, with weights of 0
	Losses []Loss
}

// ExpertUse is one expert of a plan and who wants it.
type ExpertUse struct {
	Expert int32
	Pairs  []int32 // row·TopK + pick, ascending
}
