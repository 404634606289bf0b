//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// fake is a driver without a GPU: memory is the heap's, a stream is a list of what is to be done,
// which is done when somebody waits for it. It fails where a test says so, and it reports what a
// driver would not forgive: calls without a context, memory that is not there, what is given back
// twice or never.
type fake struct {
	t testing.TB

	mu      sync.Mutex
	fails   map[string]result // what a function returns next, once
	spoiled result            // what everything returns
	memory  map[address][]byte
	pinned  map[unsafe.Pointer][]byte
	wrapped map[unsafe.Pointer]uint64
	streams map[streamHandle]*fakeStream
	events  map[eventHandle]*fakeEvent
	modules map[moduleHandle]string
	last    uintptr
	total   uint64
	major   int32 // of the GPU's capability
	minor   int32
	sms     int32 // its multiprocessors
	used    uint64
	clock   float32 // ms
	kernels map[string]fakeKernel
	retains int
	graphs  map[graphHandle][]*fakeNode
	ordered map[graphHandle]bool
	execs   map[execHandle][]*fakeNode
	names   map[functionHandle]string
	counts  map[string]int         // calls that went well
	idle    bool                   // kernels that it does not know do nothing
	gpus    int32                  // that it shows, of which the i-th is device 7+i with context 99+i
	peers   int32                  // whether they reach each other
	reach   map[contextHandle]bool // contexts that others may copy from
	eager   bool                   // streams that are made do their work at once
	spoils  func(b []byte)         // what a copy between two GPUs does to what it brings
}

// fakeNode is a node of a graph, whose parameters the driver has copied.
type fakeNode struct {
	handle nodeHandle
	name   string
	params [maxArgs][]byte
}

// fakeKernel reads its parameters and returns what it will do.
type fakeKernel func(params *[maxArgs]unsafe.Pointer) (work func() result)

type fakeStream struct {
	work  []func() result
	eager bool // work is done at once
}

type fakeEvent struct {
	stream *fakeStream
	behind int // pieces of work of its stream that come before it; they shrink as they are done
	at     float32
}

func newFake(t testing.TB) *fake {
	return &fake{
		t: t, fails: map[string]result{}, memory: map[address][]byte{}, pinned: map[unsafe.Pointer][]byte{}, wrapped: map[unsafe.Pointer]uint64{},
		streams: map[streamHandle]*fakeStream{}, events: map[eventHandle]*fakeEvent{}, modules: map[moduleHandle]string{},
		graphs: map[graphHandle][]*fakeNode{}, ordered: map[graphHandle]bool{}, execs: map[execHandle][]*fakeNode{}, names: map[functionHandle]string{}, counts: map[string]int{},
		total: 1 << 20, major: 9, sms: 132, kernels: map[string]fakeKernel{}, gpus: 1, peers: 1, reach: map[contextHandle]bool{},
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// fail makes the next call of a function return r.
func (f *fake) fail(function string, r result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[function] = r
}

// begin is what every function begins with; end has to be called. ok is false where the call fails
// with r.
func (f *fake) begin(function string) (r result, ok bool) {
	f.mu.Lock()
	if r, ok := f.fails[function]; ok {
		delete(f.fails, function)
		return r, false
	}
	if f.spoiled != success {
		return f.spoiled, false
	}
	f.counts[function]++
	return success, true
}

func (f *fake) handle() uintptr { f.last++; return f.last }

// run does a stream's work up to the n-th piece.
func (f *fake) run(s *fakeStream, n int) result {
	for range n {
		work := s.work[0]
		s.work = s.work[1:]
		for _, e := range f.events {
			if e.stream == s && e.behind > 0 {
				e.behind--
			}
		}
		f.clock += 0.001
		if r := work(); r != success {
			f.spoiled = r
			return r
		}
	}
	return success
}

// at returns n bytes of device memory, or wrapped memory.
func (f *fake) at(a address, n uint64) []byte {
	for base, mem := range f.memory {
		if base <= a && a+address(n) <= base+address(len(mem)) {
			return mem[a-base:][:n]
		}
	}
	for p, size := range f.wrapped {
		if base := address(uintptr(p)); base <= a && a+address(n) <= base+address(size) {
			return unsafe.Slice((*byte)(unsafe.Add(p, a-base)), n)
		}
	}
	return nil
}

func (f *fake) push(s streamHandle, work func() result) {
	st := f.streams[s]
	if st == nil {
		f.t.Errorf("work for stream %d, which is not there", s)
		return
	}
	st.work = append(st.work, work)
	if st.eager {
		f.run(st, len(st.work))
	}
}

func (f *fake) driver() *driver {
	d := &driver{lib: library{path: "libfake.so"}}
	f.devices(d)
	f.memories(d)
	f.queues(d)
	f.modulesOf(d)
	f.graphsOf(d)
	f.peersOf(d)
	return d
}

func (f *fake) devices(d *driver) {
	number := func(function string, v *int32, n int32) result {
		r, ok := f.begin(function)
		defer f.mu.Unlock()
		if ok {
			*v = n
		}
		return r
	}
	d.init = func() result { r, _ := f.begin("cuInit"); f.mu.Unlock(); return r }
	d.version = func(v *int32) result { return number("cuDriverGetVersion", v, 13000) }
	d.deviceCount = func(n *int32) result { return number("cuDeviceGetCount", n, f.gpus) }
	d.deviceGet = func(dev *int32, ordinal int) result { return number("cuDeviceGet", dev, 7+int32(ordinal)) }
	d.deviceName = func(name []byte, dev int32) result {
		r, _ := f.begin("cuDeviceGetName")
		defer f.mu.Unlock()
		copy(name, "Fake 9000\x00")
		return r
	}
	d.attribute = func(v *int32, attribute int, dev int32) result {
		return number("cuDeviceGetAttribute", v, map[int]int32{attributeMajor: f.major, attributeMinor: f.minor, attributeProcessors: f.sms}[attribute])
	}
	d.retain = func(ctx *contextHandle, dev int32) result {
		r, ok := f.begin("cuDevicePrimaryCtxRetain")
		defer f.mu.Unlock()
		if ok {
			*ctx = 99 + contextHandle(dev-7)
			f.retains++
		}
		return r
	}
	d.release = func(dev int32) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.retains--
		if f.spoiled != success { // the last release gives back all
			clear(f.memory)
			clear(f.pinned)
			clear(f.streams)
			clear(f.events)
			clear(f.modules)
			clear(f.execs)
			clear(f.graphs)
		}
		return f.spoiled
	}
	d.setCurrent = func(ctx contextHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		if ctx != 0 && (ctx < 99 || ctx >= 99+contextHandle(f.gpus)) {
			f.t.Errorf("context %d made current", ctx)
		}
		return success
	}
	d.errorName = func(r result) string { return fmt.Sprintf("FAKE_%d", r) }
	d.errorString = func(r result) string { return "a fake error" }
}

func (f *fake) memories(d *driver) {
	d.memInfo = func(free, total *uint64) result {
		r, _ := f.begin("cuMemGetInfo_v2")
		defer f.mu.Unlock()
		*free, *total = f.total-f.used, f.total
		return r
	}
	d.alloc = func(a *address, n uint64) result {
		r, ok := f.begin("cuMemAlloc_v2")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		if n > 1<<40 {
			return 1 // "an invalid value"
		}
		if f.used+n > f.total {
			return outOfMemory
		}
		f.used += n
		mem := make([]byte, n)
		for i := range mem {
			mem[i] = 0xa5
		}
		*a = address(uintptr(unsafe.Pointer(&mem[0])))
		f.memory[*a] = mem
		return success
	}
	d.free = func(a address) result {
		r, ok := f.begin("cuMemFree_v2")
		defer f.mu.Unlock()
		if f.memory[a] == nil {
			f.t.Errorf("memory %#x is given back, but is not there", a)
		}
		f.used -= uint64(len(f.memory[a]))
		delete(f.memory, a)
		if !ok {
			return r
		}
		return success
	}
	d.hostAlloc = func(p *unsafe.Pointer, n uint64, flags uint32) result {
		r, ok := f.begin("cuMemHostAlloc")
		defer f.mu.Unlock()
		if ok {
			mem := make([]byte, n)
			*p = unsafe.Pointer(&mem[0])
			f.pinned[*p] = mem
		}
		return r
	}
	d.hostFree = func(p unsafe.Pointer) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.pinned[p] == nil {
			f.t.Errorf("pinned memory %p is given back, but is not there", p)
		}
		delete(f.pinned, p)
		return f.spoiled
	}
	d.hostRegister = func(p unsafe.Pointer, n uint64, flags uint32) result {
		r, ok := f.begin("cuMemHostRegister_v2")
		defer f.mu.Unlock()
		if ok {
			f.wrapped[p] = n
		}
		return r
	}
	d.unregister = func(p unsafe.Pointer) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.wrapped[p] == 0 {
			f.t.Errorf("memory %p is unregistered, but is not registered", p)
		}
		delete(f.wrapped, p)
		return f.spoiled
	}
	d.hostAddress = func(a *address, p unsafe.Pointer) result {
		r, _ := f.begin("cuMemHostGetDevicePointer_v2")
		defer f.mu.Unlock()
		*a = address(uintptr(p))
		return r
	}
	move := func(function string, s streamHandle, work func() bool) result {
		r, ok := f.begin(function)
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		f.push(s, func() result {
			if !work() {
				return illegalAddress
			}
			return success
		})
		return success
	}
	d.copyIn = func(dst address, src unsafe.Pointer, n uint64, s streamHandle) result {
		return move("cuMemcpyHtoDAsync_v2", s, func() bool { return copy(f.at(dst, n), unsafe.Slice((*byte)(src), n)) == int(n) })
	}
	d.copyOut = func(dst unsafe.Pointer, src address, n uint64, s streamHandle) result {
		return move("cuMemcpyDtoHAsync_v2", s, func() bool { return copy(unsafe.Slice((*byte)(dst), n), f.at(src, n)) == int(n) })
	}
	d.fill = func(dst address, value byte, n uint64, s streamHandle) result {
		return move("cuMemsetD8Async", s, func() bool {
			mem := f.at(dst, n)
			for i := range mem {
				mem[i] = value
			}
			return mem != nil
		})
	}
}

func (f *fake) queues(d *driver) {
	d.streamCreate = func(s *streamHandle, flags uint32) result {
		r, ok := f.begin("cuStreamCreate")
		defer f.mu.Unlock()
		if ok {
			*s = streamHandle(f.handle())
			f.streams[*s] = &fakeStream{eager: f.eager}
		}
		return r
	}
	d.streamDestroy = func(s streamHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.streams, s)
		return f.spoiled
	}
	d.streamSync = func(s streamHandle) result {
		r, ok := f.begin("cuStreamSynchronize")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		return f.run(f.streams[s], len(f.streams[s].work))
	}
	d.eventCreate = func(e *eventHandle, flags uint32) result {
		r, ok := f.begin("cuEventCreate")
		defer f.mu.Unlock()
		if ok {
			*e = eventHandle(f.handle())
			f.events[*e] = new(fakeEvent)
		}
		return r
	}
	d.eventDestroy = func(e eventHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.events[e] == nil {
			f.t.Errorf("event %d is given back, but is not there", e)
		}
		delete(f.events, e)
		return f.spoiled
	}
	d.eventRecord = func(e eventHandle, s streamHandle) result {
		r, ok := f.begin("cuEventRecord")
		defer f.mu.Unlock()
		if ok {
			x := f.events[e]
			f.push(s, func() result { x.at = f.clock; return success })
			*x = fakeEvent{stream: f.streams[s], behind: len(f.streams[s].work)}
		}
		return r
	}
	d.eventSync = func(e eventHandle) result {
		r, ok := f.begin("cuEventSynchronize")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		return f.run(f.events[e].stream, f.events[e].behind)
	}
	d.eventQuery = func(e eventHandle) result {
		r, ok := f.begin("cuEventQuery")
		defer f.mu.Unlock()
		if ok && f.events[e].behind > 0 {
			return 600 // CUDA_ERROR_NOT_READY
		}
		return r
	}
	d.eventElapsed = func(ms *float32, begin, end eventHandle) result {
		r, _ := f.begin("cuEventElapsedTime")
		defer f.mu.Unlock()
		*ms = f.events[end].at - f.events[begin].at
		return r
	}
}

func (f *fake) modulesOf(d *driver) {
	d.moduleLoad = func(m *moduleHandle, image []byte) result {
		r, ok := f.begin("cuModuleLoadData")
		defer f.mu.Unlock()
		if ok {
			*m = moduleHandle(f.handle())
			f.modules[*m] = string(image)
		}
		return r
	}
	d.moduleUnload = func(m moduleHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.modules, m)
		return f.spoiled
	}
	d.function = func(h *functionHandle, m moduleHandle, name string) result {
		r, ok := f.begin("cuModuleGetFunction")
		defer f.mu.Unlock()
		if ok {
			*h = functionHandle(f.handle())
			f.names[*h] = name
		}
		return r
	}
	d.launch = func(h functionHandle, groups [3]int, threads int, s streamHandle, params *unsafe.Pointer) result {
		r, ok := f.begin("cuLaunchKernel")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		f.push(s, f.kernel(f.names[h])((*[maxArgs]unsafe.Pointer)(unsafe.Pointer(params))))
		return success
	}
}

// kernel returns what a kernel does.
func (f *fake) kernel(name string) fakeKernel {
	if k := f.kernels[name]; k != nil || !f.idle {
		return k
	}
	return func(*[maxArgs]unsafe.Pointer) func() result { return func() result { return success } }
}

// node copies what the driver copies of a node's description.
func (f *fake) node(n *fakeNode, k *kernelSpec) {
	n.name = f.names[k.function]
	all := (*[maxArgs]unsafe.Pointer)(k.params)
	for i, size := range fakeSizes[n.name] {
		n.params[i] = append([]byte(nil), unsafe.Slice((*byte)(all[i]), size)...)
	}
}

// fakeSizes are the sizes of kernels' parameters, which a driver knows from their code.
var fakeSizes = map[string][]int{"fill": {8, 4, 8}}

func (f *fake) graphsOf(d *driver) {
	d.graphCreate = func(g *graphHandle) result {
		r, ok := f.begin("cuGraphCreate")
		defer f.mu.Unlock()
		if ok {
			*g = graphHandle(f.handle())
			f.graphs[*g] = nil
		}
		return r
	}
	d.graphDestroy = func(g graphHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.graphs, g)
		delete(f.ordered, g)
		return success
	}
	d.graphAdd = func(g graphHandle, h *nodeHandle, k *kernelSpec) result {
		r, ok := f.begin("cuGraphAddKernelNode_v2")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		n := &fakeNode{handle: nodeHandle(f.handle())}
		f.node(n, k)
		*h = n.handle
		f.graphs[g] = append(f.graphs[g], n)
		return success
	}
	order := func(function string, g graphHandle, nodes []nodeHandle) result {
		r, ok := f.begin(function)
		defer f.mu.Unlock()
		if !slices.EqualFunc(nodes, f.graphs[g], func(h nodeHandle, n *fakeNode) bool { return h == n.handle }) {
			f.t.Errorf("%s puts %d nodes of %d in order, or others", function, len(nodes), len(f.graphs[g]))
		}
		f.ordered[g] = ok
		return r
	}
	d.graphOrder = func(g graphHandle, nodes []nodeHandle) result { return order("cuGraphAddDependencies", g, nodes) }
	d.graphOverlap = func(g graphHandle, nodes []nodeHandle, edges []edgeData) result {
		for i, e := range edges {
			if e != (edgeData{fromPort: 1, toPort: 0, kind: 1}) || len(edges) != len(nodes)-1 {
				f.t.Errorf("edge %d of %d for %d nodes is %+v", i, len(edges), len(nodes), e)
			}
		}
		return order("cuGraphAddDependencies_v2", g, nodes)
	}
	d.graphInstantiate = func(x *execHandle, g graphHandle) result {
		r, ok := f.begin("cuGraphInstantiateWithFlags")
		defer f.mu.Unlock()
		if ok {
			if !f.ordered[g] {
				f.t.Errorf("the nodes of graph %d have no order", g)
			}
			*x = execHandle(f.handle())
			f.execs[*x] = f.graphs[g]
		}
		return r
	}
	d.graphExecDestroy = func(x execHandle) result {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.execs[x] == nil {
			f.t.Errorf("graph %d is given back, but is not there", x)
		}
		delete(f.execs, x)
		return success
	}
	d.graphSet = func(x execHandle, h nodeHandle, k *kernelSpec) result {
		r, ok := f.begin("cuGraphExecKernelNodeSetParams_v2")
		defer f.mu.Unlock()
		// a node is known by the graph that it was added to, as long as that is there
		known := false
		for _, nodes := range f.graphs {
			known = known || slices.ContainsFunc(nodes, func(n *fakeNode) bool { return n.handle == h })
		}
		for _, n := range f.execs[x] {
			if ok && known && n.handle == h {
				f.node(n, k)
				return success
			}
		}
		if ok {
			f.t.Errorf("node %d is none of graph %d", h, x)
		}
		return r
	}
	d.graphLaunch = func(x execHandle, s streamHandle) result {
		r, ok := f.begin("cuGraphLaunch")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		for _, n := range f.execs[x] {
			var params [maxArgs]unsafe.Pointer
			for i, p := range n.params {
				params[i] = unsafe.Pointer(unsafe.SliceData(p))
			}
			f.push(s, f.kernel(n.name)(&params))
		}
		return success
	}
}

// rest checks that all was given back.
func (f *fake) rest() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.memory)+len(f.pinned)+len(f.wrapped)+len(f.streams)+len(f.events)+len(f.modules)+len(f.graphs)+len(f.execs)+f.retains != 0 {
		f.t.Errorf("left behind: %d pieces of memory, %d pinned, %d wrapped, %d streams, %d events, %d modules, %d and %d graphs, %d contexts",
			len(f.memory), len(f.pinned), len(f.wrapped), len(f.streams), len(f.events), len(f.modules), len(f.graphs), len(f.execs), f.retains)
	}
}

func (f *fake) peersOf(d *driver) {
	d.canPeer = func(can *int32, dev, peer int32) result {
		r, _ := f.begin("cuDeviceCanAccessPeer")
		defer f.mu.Unlock()
		*can = f.peers
		return r
	}
	d.enablePeer = func(peer contextHandle) result {
		r, ok := f.begin("cuCtxEnablePeerAccess")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		if f.reach[peer] {
			return peerAlready
		}
		f.reach[peer] = true
		return success
	}
	d.copyPeer = func(dst address, to contextHandle, src address, from contextHandle, n uint64, s streamHandle) result {
		r, ok := f.begin("cuMemcpyPeerAsync")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		if !f.reach[from] || to == from {
			f.t.Errorf("a copy from context %d to %d, of which the first is not reached", from, to)
		}
		f.push(s, func() result {
			mem := f.at(dst, n)
			if copy(mem, f.at(src, n)) != int(n) {
				return illegalAddress
			}
			if f.spoils != nil {
				f.spoils(mem)
			}
			return success
		})
		return success
	}
	d.streamWait = func(s streamHandle, e eventHandle) result {
		r, ok := f.begin("cuStreamWaitEvent")
		defer f.mu.Unlock()
		if !ok {
			return r
		}
		// The wait is for the event as it is recorded now, whatever becomes of it later.
		at := *f.events[e]
		now := &at
		mark := eventHandle(f.handle())
		f.events[mark] = now
		f.push(s, func() result {
			defer delete(f.events, mark)
			return f.run(now.stream, now.behind)
		})
		return success
	}
}
