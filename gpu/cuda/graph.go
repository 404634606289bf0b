//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// A launch costs 4 µs of the processor and a kernel of a decoded token little more on the GPU. So
// launches that follow one another (a chain) are kept back until something else comes, and a chain
// that comes again is replayed as a CUDA graph: 2.5 µs for all of it, and 0.6 µs for each kernel
// whose constants or grid have changed since. docs/experiments.md has the figures.
const (
	leastChain = 3    // kernels from which a graph is worth it
	mostGraphs = 2048 // kept for one stream: those of a few numbers of rows, of all layers
)

// node is one launch of a chain.
type node struct {
	p          *pipeline
	groups     [3]int
	threads    int
	first, end int // of its parameters
}

// param is one parameter's place in a chain's data.
type param struct {
	at, size int
	memory   bool // it is an address
}

// chain is launches that follow one another.
type chain struct {
	nodes  []node
	params []param
	data   []byte
}

func (c *chain) reset() {
	clear(c.nodes)
	c.nodes, c.params, c.data = c.nodes[:0], c.params[:0], c.data[:0]
}

// add appends a launch, with its parameters as they are.
func (c *chain) add(p *pipeline, l *launch.Launch) {
	n := node{p: p, groups: l.Groups, threads: l.Threads, first: len(c.params)}
	for i := range l.Args {
		a := &l.Args[i]
		x := param{at: len(c.data), memory: a.Memory != nil}
		if x.memory {
			c.data = binary.NativeEndian.AppendUint64(c.data, a.Memory.Address()+uint64(a.Offset))
		} else {
			c.data = append(c.data, a.Bytes...)
		}
		x.size = len(c.data) - x.at
		c.params = append(c.params, x)
	}
	n.end = len(c.params)
	c.nodes = append(c.nodes, n)
}

// values returns a node's parameters, one after the other.
func (c *chain) values(n *node) []byte {
	if n.first == n.end {
		return nil
	}
	last := c.params[n.end-1]
	return c.data[c.params[n.first].at : last.at+last.size]
}

// point makes params point to a node's parameters.
func (c *chain) point(n *node, params *[maxArgs]unsafe.Pointer) {
	for i, x := range c.params[n.first:n.end] {
		params[i] = unsafe.Pointer(unsafe.SliceData(c.data[x.at:]))
	}
}

// same reports whether two chains have the same kernels on the same memory: then they differ in
// grids and constants alone.
func (c *chain) same(o *chain) bool {
	if len(c.nodes) != len(o.nodes) || !slices.Equal(c.params, o.params) {
		return false
	}
	for i := range c.nodes {
		if c.nodes[i].p != o.nodes[i].p || c.nodes[i].end != o.nodes[i].end {
			return false
		}
	}
	for _, x := range c.params {
		if x.memory && !bytes.Equal(c.data[x.at:x.at+x.size], o.data[x.at:x.at+x.size]) {
			return false
		}
	}
	return true
}

// hash is equal for chains that are the same.
func (c *chain) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range c.nodes {
		maphash.WriteComparable(&h, c.nodes[i].p)
	}
	for _, x := range c.params {
		if x.memory {
			h.Write(c.data[x.at : x.at+x.size])
		}
	}
	return h.Sum64()
}

// set makes c a copy of o.
func (c *chain) set(o *chain) {
	c.nodes = append(c.nodes[:0], o.nodes...)
	c.params = append(c.params[:0], o.params...)
	c.data = append(c.data[:0], o.data...)
}

// graph is a chain as the driver knows it. Until it comes a second time it is a note that it came
// once.
type graph struct {
	chain chain       // as it was last
	whole graphHandle // which the nodes belong to: they are needed to change exec
	nodes []nodeHandle
	exec  execHandle // 0: the chain came once
	used  uint64     // when; the stream counts
}

// destroy gives a graph back. What runs of it ends as it would have.
func (g *graph) destroy(d *driver) {
	if g.exec != 0 {
		d.graphExecDestroy(g.exec)
		d.graphDestroy(g.whole)
	}
}

// graphs are the chains that a stream has seen.
type graphs struct {
	seed  maphash.Seed
	known map[uint64]*graph
	clock uint64
	spec  kernelSpec // what the driver is told of one node
}

// kernelSpec mirrors CUDA_KERNEL_NODE_PARAMS_v2.
type kernelSpec struct {
	function       functionHandle
	groups         [3]uint32
	threads        [3]uint32
	shared         uint32
	params, extra  unsafe.Pointer
	kernel, kernCt uintptr
}

// edgeData mirrors CUgraphEdgeData.
type edgeData struct {
	fromPort, toPort, kind uint8
	_                      [5]uint8
}

// early is the edge to a kernel that may begin when the one before it lets it, and waits by itself
// for that one's end. Only kernels that do so (MSL_BEGIN of package msl, begin of
// override/limbs.cu) may follow such an edge.
// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
var early = edgeData{fromPort: 1, kind: 1}

// overlaps reports whether kernels of a graph may begin before the one before them ends: the GPU
// and the driver have to know of it.
func (b *backend) overlaps() bool { return b.capability >= 90 && b.d.graphOverlap != nil }

// order makes each node of a graph follow the one before.
func (b *backend) order(g graphHandle, nodes []nodeHandle) error {
	if b.overlaps() {
		return b.check(b.d.graphOverlap(g, nodes, slices.Repeat([]edgeData{early}, len(nodes)-1)), "cuGraphAddDependencies_v2", "")
	}
	return b.check(b.d.graphOrder(g, nodes), "cuGraphAddDependencies", "")
}

// flush launches what has been kept back.
func (s *stream) flush(x *batch) error {
	c := &s.chain
	if len(c.nodes) == 0 {
		return nil
	}
	defer c.reset()
	for i := range c.nodes {
		if name := c.nodes[i].p.kernel; !slices.Contains(x.kernels, name) {
			x.kernels = append(x.kernels, name)
		}
	}
	if len(c.nodes) < leastChain {
		return s.launchAll(x)
	}
	g := s.find()
	if g == nil {
		return s.launchAll(x)
	}
	if err := s.update(g); err != nil {
		return x.keep(err)
	}
	if r := s.b.d.graphLaunch(g.exec, s.handle); r != success {
		return x.keep(s.b.check(r, "cuGraphLaunch", x.doing()))
	}
	return nil
}

// launchAll launches the chain's kernels one by one.
func (s *stream) launchAll(x *batch) error {
	c := &s.chain
	for i := range c.nodes {
		n := &c.nodes[i]
		c.point(n, &s.params)
		if r := s.b.d.launch(n.p.function, n.groups, n.threads, s.handle, &s.params[0]); r != success {
			return x.keep(s.b.check(r, "cuLaunchKernel", n.doing()))
		}
	}
	return nil
}

// find returns the graph of the chain, or nil if the chain is new or the driver makes no graph of
// it. Then its kernels are launched one by one.
func (s *stream) find() *graph {
	gs := &s.graphs
	gs.clock++
	h := s.chain.hash(gs.seed)
	g := gs.known[h]
	switch {
	case g == nil:
		if len(gs.known) >= mostGraphs {
			s.forget()
		}
		g = &graph{used: gs.clock}
		g.chain.set(&s.chain)
		gs.known[h] = g
		return nil
	case !g.chain.same(&s.chain): // one hash for two
		return nil
	case g.exec == 0:
		if err := s.build(g); err != nil {
			s.b.log.Debug("cuda: no graph", "kernels", len(s.chain.nodes), "why", err)
			return nil
		}
	}
	g.used = gs.clock
	return g
}

// forget gives up the graph that was not used for the longest time.
func (s *stream) forget() {
	var oldest uint64
	var which *graph
	for h, g := range s.graphs.known {
		if which == nil || g.used < which.used {
			oldest, which = h, g
		}
	}
	which.destroy(s.b.d)
	delete(s.graphs.known, oldest)
}

// spec describes a node of the chain to the driver.
func (s *stream) spec(n *node) *kernelSpec {
	s.chain.point(n, &s.params)
	k := &s.graphs.spec
	*k = kernelSpec{function: n.p.function, threads: [3]uint32{uint32(n.threads), 1, 1}, params: unsafe.Pointer(&s.params[0])}
	for i, g := range n.groups {
		k.groups[i] = uint32(g)
	}
	return k
}

// build makes a graph of the chain.
func (s *stream) build(g *graph) (err error) {
	d, c := s.b.d, &s.chain
	if err := s.b.check(d.graphCreate(&g.whole), "cuGraphCreate", ""); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.graphDestroy(g.whole)
			g.exec = 0
		}
	}()
	g.nodes = make([]nodeHandle, len(c.nodes))
	for i := range c.nodes {
		if err := s.b.check(d.graphAdd(g.whole, &g.nodes[i], s.spec(&c.nodes[i])), "cuGraphAddKernelNode_v2", c.nodes[i].doing()); err != nil {
			return err
		}
	}
	if err := s.b.order(g.whole, g.nodes); err != nil {
		return err
	}
	g.chain.set(c)
	return s.b.check(d.graphInstantiate(&g.exec, g.whole), "cuGraphInstantiateWithFlags", "")
}

// update brings a graph's grids and constants up to the chain's.
func (s *stream) update(g *graph) error {
	c := &s.chain
	for i := range c.nodes {
		n, was := &c.nodes[i], &g.chain.nodes[i]
		if n.groups == was.groups && n.threads == was.threads && bytes.Equal(c.values(n), g.chain.values(was)) {
			continue
		}
		if r := s.b.d.graphSet(g.exec, g.nodes[i], s.spec(n)); r != success {
			was.groups = [3]int{} // its state is unknown: set it the next time
			return s.b.check(r, "cuGraphExecKernelNodeSetParams_v2", n.doing())
		}
		was.groups, was.threads = n.groups, n.threads
		copy(g.chain.values(was), c.values(n))
	}
	return nil
}

// closeGraphs gives all graphs back.
func (s *stream) closeGraphs() {
	for _, g := range s.graphs.known {
		g.destroy(s.b.d)
	}
	clear(s.graphs.known)
}
