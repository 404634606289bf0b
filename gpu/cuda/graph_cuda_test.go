//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// nodeParams mirrors CUDA_KERNEL_NODE_PARAMS_v2.
type nodeParams struct {
	function        uintptr
	groups, threads [3]uint32
	shared          uint32
	params, extra   uintptr
	kernel, ctx     uintptr
}

// What a graph saves against launches one by one, with so many of its kernels given new parameters.
func BenchmarkGraph(b *testing.B) {
	g, m := openProbe(b)
	x := newMemory(b, g, 1<<20)
	s := newStream(b, g)
	f := compileProbe(b, g, m, "nothing").(*pipeline).function
	sym := &symbols{lib: g.d.lib}
	create, add, instantiate := sym.proc("cuGraphCreate"), sym.proc("cuGraphAddKernelNode_v2"), sym.proc("cuGraphInstantiateWithFlags")
	set, replay := sym.proc("cuGraphExecKernelNodeSetParams_v2"), sym.proc("cuGraphLaunch")
	must(b, sym.err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err := s.record()
	must(b, err)
	at, n := x.Address(), uint32(32)
	params := new([2]unsafe.Pointer)
	params[0], params[1] = unsafe.Pointer(&at), unsafe.Pointer(&n)
	for _, count := range []int{4, 10, 20, 100} {
		b.Run(fmt.Sprintf("kernels=%d/direct", count), func(b *testing.B) {
			var cpu time.Duration
			var device int64
			for b.Loop() {
				_, err := s.record()
				must(b, err)
				began := time.Now()
				for range count {
					g.d.launch(f, [3]int{1, 1, 1}, 32, s.handle, &params[0])
				}
				cpu += time.Since(began)
				device += wait(b, s)
			}
			perOp(b, "cpu-ns", float64(cpu)/float64(b.N))
			perOp(b, "device-ns", float64(device)/float64(b.N))
		})
		p := &nodeParams{function: uintptr(f), groups: [3]uint32{1, 1, 1}, threads: [3]uint32{32, 1, 1}, params: uintptr(unsafe.Pointer(&params[0]))}
		graph, exec := new(uintptr), new(uintptr)
		must(b, g.check(create.call(uintptr(unsafe.Pointer(graph)), 0), "cuGraphCreate", ""))
		nodes := make([]uintptr, count)
		for i := range nodes {
			deps, k := uintptr(0), uintptr(0)
			if i > 0 {
				deps, k = uintptr(unsafe.Pointer(&nodes[i-1])), 1
			}
			must(b, g.check(add.call(uintptr(unsafe.Pointer(&nodes[i])), *graph, deps, k, uintptr(unsafe.Pointer(p))), "cuGraphAddKernelNode_v2", ""))
		}
		must(b, g.check(instantiate.call(uintptr(unsafe.Pointer(exec)), *graph, 0), "cuGraphInstantiateWithFlags", ""))
		for _, changed := range []int{0, count / 2, count} {
			b.Run(fmt.Sprintf("kernels=%d/changed=%d", count, changed), func(b *testing.B) {
				var cpu time.Duration
				var device int64
				for b.Loop() {
					_, err := s.record()
					must(b, err)
					began := time.Now()
					for i := range changed {
						must(b, g.check(set.call(*exec, nodes[i], uintptr(unsafe.Pointer(p))), "cuGraphExecKernelNodeSetParams_v2", ""))
					}
					must(b, g.check(replay.call(*exec, uintptr(s.handle)), "cuGraphLaunch", ""))
					cpu += time.Since(began)
					device += wait(b, s)
				}
				perOp(b, "cpu-ns", float64(cpu)/float64(b.N))
				perOp(b, "device-ns", float64(device)/float64(b.N))
			})
		}
		runtime.KeepAlive(params)
	}
}
