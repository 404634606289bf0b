package launch

import (
	"fmt"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// mostExperts is how many experts the routing kernels serve: their keys, three numbers each, have
// to fit a threadgroup's memory.
const mostExperts = 2048

type routeParams struct {
	groups, topGroups uint32
	scale             float32
}

func (x *encoder) route(o *gpu.Route) error {
	if o.Experts > mostExperts || o.TopK > mostExperts/2 {
		return fmt.Errorf("%d picks of %d experts; the kernel serves at most %d of %d", o.TopK, o.Experts, mostExperts/2, mostExperts)
	}
	r := &o.Rule
	x.begin(o, "route", o.Experts, o.TopK, flag(r.Sigmoid), flag(r.NormTopK), flag(!o.Bias.IsZero()), flag(o.Rows == 1))
	x.views(o.Scores, o.Bias, o.Picks, o.Weights)
	// the same for all formats where there is one row
	x.jobsOf(x.jobTables(o.Rows, o.TopK, o.Experts, false))
	x.routed = nil
	if o.Rows == 1 {
		x.routed = o
	}
	scale := r.Scale
	if scale == 0 {
		scale = 1
	}
	constants(x, routeParams{uint32(r.NGroup), uint32(r.TopKGroup), scale})
	x.end(32, o.Rows)
	return nil
}

type jobParams struct{ n, experts, xrows, jobs uint32 }

// jobThreads is how many threads group the pairs of an operation.
const jobThreads = 1024

// jobTables is where an operation's lists are: in memory of the encoder, which each operation with
// experts overwrites.
type jobTables struct {
	pairs int // bytes from the beginning, where the jobs are
	n     int // jobs that there can be; those that there are not have no pairs
	xrows int // most pairs of a job
}

// jobTables reserves the memory of an operation's lists and returns where they are.
func (x *encoder) jobTables(rows, topK, experts int, limbs bool) (t jobTables) {
	pairs := rows * topK
	switch { // how many pairs an expert has is not known here: assume that all are picked alike
	case limbs && rows > limbFew && pairs > limbFew*experts:
		t.xrows = limbMany
	case limbs: // jobs with fewer cost less
		t.xrows = min(rows, limbFew)
	default:
		t.xrows = vectors(min(rows, ceil(pairs, experts)))
	}
	t.n = min(pairs, experts+pairs/t.xrows)
	t.pairs = (t.n*16 + 255) &^ 255
	x.jobsWanted = max(x.jobsWanted, t.pairs+4*pairs)
	return t
}

// jobs groups an operation's pairs by expert, on the device. For one row whose experts were chosen
// in this Submit that is done already: each pick is a job.
func (x *encoder) jobs(o *gpu.Experts) (t jobTables, err error) {
	pairs, experts := o.Rows*o.TopK, len(o.Table.Experts)
	if experts > mostExperts {
		return t, fmt.Errorf("a table of %d experts; the kernel serves at most %d", experts, mostExperts)
	}
	first := &o.Table.Experts[0]
	t = x.jobTables(o.Rows, o.TopK, experts, x.limbs(first.Gate.Format) && x.limbs(first.Up.Format) && x.limbs(first.Down.Format))
	r := x.routed
	x.routed = nil // others' lists come to the same place
	if r != nil && o.Rows == 1 && o.Picks.At == r.Picks && o.TopK == r.TopK && experts == r.Experts {
		return t, nil
	}
	size := 64
	for size < experts {
		size *= 2
	}
	x.begin(o, "expert_jobs", size)
	list(x, &o.Picks)
	x.jobsOf(t)
	constants(x, jobParams{uint32(pairs), uint32(experts), uint32(t.xrows), uint32(t.n)})
	x.end(min(jobThreads, 32*ceil(max(pairs, size), 32)), 1)
	return t, nil
}

// jobsOf binds an operation's jobs and pairs.
func (x *encoder) jobsOf(t jobTables) {
	x.args = append(x.args, argument{source: fromJobs}, argument{source: fromJobs, offset: t.pairs})
}

// list binds numbers of the device, or puts the host's into the tables.
func list[T int32 | float32](x *encoder, l *gpu.List[T]) {
	if l.At.IsZero() {
		x.tableAt(table(x, l.Host))
		return
	}
	x.views(l.At)
}

// tabulate writes a table of experts to its place.
func (x *encoder) tabulate(o *gpu.Tabulate) {
	o.Table.Kept = wideMatrices(o.Table)
	list := x.weightsOf(o.Table)
	at := table(x, list)
	x.steps = append(x.steps, step{op: o, index: x.at, other: doTabulate, tables: [2]int{at, at + len(list)*int(unsafe.Sizeof(list[0]))}})
}

func doTabulate(x *encoder, s *step) error {
	to := s.op.(*gpu.Tabulate).Table.At
	return x.stream.CopyIn(memoryOf(to), to.Offset, x.tables[s.tables[0]:s.tables[1]])
}

// weightsOf is a table as kernels read it.
func (x *encoder) weightsOf(t *gpu.ExpertTable) []expertWeights {
	l := &x.lists
	l.experts = l.experts[:0]
	for i := range t.Experts {
		l.experts = append(l.experts, expertWeightsOf(&t.Experts[i]))
	}
	return l.experts
}
