package launch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
)

// mostExperts is how many experts the routing kernels serve: their keys, three numbers each, have
// to fit a threadgroup's memory.
const mostExperts = 2048

type routeParams struct {
	groups, topGroups uint32
	scale             float32
}

// routed is the operation whose picks the lists in the encoder's memory are made of, if any.
type routed struct {
	by    *gpu.Route
	lists jobTables
}

func (x *encoder) route(o *gpu.Route) error {
	if o.Experts > mostExperts || o.TopK > mostExperts/2 {
		return fmt.Errorf("%d picks of %d experts; the kernel serves at most %d of %d", o.TopK, o.Experts, mostExperts/2, mostExperts)
	}
	r := &o.Rule
	x.begin(o, "route", o.Experts, o.TopK, flag(r.Sigmoid), flag(r.NormTopK), flag(!o.Bias.IsZero()), flag(o.Rows == 1))
	// the same for all formats where there is one row
	lists := x.jobTables(o.Rows, o.TopK, o.Experts, false)
	x.routeOperands(o, lists)
	x.routed = routed{}
	if o.Rows == 1 {
		x.routed = routed{o, lists}
	}
	x.end(32, o.Rows)
	return nil
}

// routeOperands binds what the routing kernels have in common.
func (x *encoder) routeOperands(o *gpu.Route, lists jobTables) {
	x.views(o.Scores, o.Bias, o.Picks, o.Weights)
	x.keepLimbs(extentOf(o.Picks, 4*o.Rows*o.TopK), extentOf(o.Weights, 4*o.Rows*o.TopK))
	x.jobsOf(lists)
	scale := o.Rule.Scale
	if scale == 0 {
		scale = 1
	}
	constants(x, routeParams{uint32(o.Rule.NGroup), uint32(o.Rule.TopKGroup), scale})
}

// joinRoute has the choice of experts for a few rows make the lists, too, by which a later
// operation computes them. What lies between the two is encoded as ever.
func (x *encoder) joinRoute(ops []gpu.Op) int {
	o, ok := ops[0].(*gpu.Route)
	if !ok || o.Rows < 2 || o.Experts > mostExperts {
		return 0
	}
	rows := routeRoom(o)
	e := expertsOf(ops[1:], o)
	if rows == 0 || e == nil {
		return 0
	}
	t := x.jobTables(o.Rows, o.TopK, o.Experts, x.limbJobs(e))
	r := &o.Rule
	x.begin(o, "route_jobs", o.Experts, o.TopK, flag(r.Sigmoid), flag(r.NormTopK), flag(!o.Bias.IsZero()), flag(r.NGroup > 1), rows, jobSize(o.Experts))
	x.routeOperands(o, t)
	constants(x, jobParamsOf(o.Rows*o.TopK, o.Experts, t))
	x.end(32*o.Rows, 1)
	x.routed = routed{o, t}
	return 1
}

// routeRoom returns for how many rows a kernel has room that serves o's, 8 or 32: there is a
// variant of it for each. It is 0 where more rows come, or where they do not fit a threadgroup's
// memory.
func routeRoom(o *gpu.Route) int {
	const most, memory = 32, 32 << 10
	rows := 8
	if o.Rows > rows {
		rows = most
	}
	each := o.Experts + ceil(o.TopK, 4)*4 // numbers of a row
	if o.Rule.NGroup > 1 {
		each += 2 * o.Experts
	} else {
		each += 2
	}
	if o.Rows > most || 4*(rows*each+3*jobSize(o.Experts)+1) > memory {
		return 0
	}
	return rows
}

// expertsOf returns the operation among ops that computes the experts that o chooses, if nothing
// before it may change the picks or make lists of its own.
func expertsOf(ops []gpu.Op, o *gpu.Route) *gpu.Experts {
	for _, op := range ops {
		switch e := op.(type) {
		case *gpu.Experts:
			if e.Rows == o.Rows && e.TopK == o.TopK && e.Picks.At == o.Picks && len(e.Table.Experts) == o.Experts {
				return e
			}
			return nil
		case *gpu.Route, *gpu.Upload, *gpu.Download, *gpu.Fill:
			return nil
		}
	}
	return nil
}

type jobParams struct{ n, experts, xrows, jobs uint32 }

func jobParamsOf(pairs, experts int, t jobTables) jobParams {
	return jobParams{uint32(pairs), uint32(experts), uint32(t.xrows), uint32(t.n)}
}

// jobSize is how many experts a kernel has room for that serves so many.
func jobSize(experts int) int {
	size := 64
	for size < experts {
		size *= 2
	}
	return size
}

// limbJobs reports whether all products of an operation are of limbs, which take larger jobs.
func (x *encoder) limbJobs(o *gpu.Experts) bool {
	first := &o.Table.Experts[0]
	return x.limbs(first.Gate.Format) && x.limbs(first.Up.Format) && x.limbs(first.Down.Format)
}

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
		t.xrows = limbJob
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

// jobs groups an operation's pairs by expert, on the device. For few rows whose experts were chosen
// in this Submit that is done already.
func (x *encoder) jobs(o *gpu.Experts) (t jobTables, err error) {
	pairs, experts := o.Rows*o.TopK, len(o.Table.Experts)
	if experts > mostExperts {
		return t, fmt.Errorf("a table of %d experts; the kernel serves at most %d", experts, mostExperts)
	}
	t = x.jobTables(o.Rows, o.TopK, experts, x.limbJobs(o))
	r := x.routed
	x.routed = routed{} // others' lists come to the same place
	if r.by != nil && o.Rows == r.by.Rows && o.Picks.At == r.by.Picks && o.TopK == r.by.TopK && experts == r.by.Experts && t == r.lists {
		return t, nil
	}
	size := jobSize(experts)
	x.begin(o, "expert_jobs", size)
	list(x, &o.Picks)
	x.jobsOf(t)
	constants(x, jobParamsOf(pairs, experts, t))
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
	end := at + len(list)*expertEntry
	x.steps = append(x.steps, step{op: o, index: x.at, other: doTabulate, tables: [2]int{at, end}})
}

func doTabulate(x *encoder, s *step) error {
	to := s.op.(*gpu.Tabulate).Table.At
	return x.stream.CopyIn(memoryOf(to), to.Offset, x.tables[s.tables[0]:s.tables[1]])
}

// retabulate writes one entry of a table. What all experts allow, fewer may allow from now on.
func (x *encoder) retabulate(o *gpu.Retabulate) {
	wide, one := wideOf(o.Table), wideExpert(&o.Expert)
	for which := range wide {
		wide[which] = wide[which] && one[which]
	}
	o.Table.Kept = wide
	entry := append(x.lists.experts[:0], expertWeightsOf(&o.Expert))
	x.lists.experts = entry
	at := table(x, entry)
	s := step{op: o, index: x.at, other: doRetabulate, tables: [2]int{at, at + expertEntry}}
	x.steps = append(x.steps, s)
}

func doRetabulate(x *encoder, s *step) error {
	o := s.op.(*gpu.Retabulate)
	to := o.Table.At.At(o.Index * expertEntry)
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
