//go:build linux && (amd64 || arm64)

package cuda

import (
	"unsafe"
)

// address is one of device memory, or of host memory as the device sees it.
type address uint64

// Handles of the driver's objects.
type (
	contextHandle  uintptr
	streamHandle   uintptr
	eventHandle    uintptr
	moduleHandle   uintptr
	functionHandle uintptr
	graphHandle    uintptr
	nodeHandle     uintptr
	execHandle     uintptr
)

// Flags and attributes of the driver's interface.
const (
	streamNonBlocking = 1 // no order with the default stream

	eventWithoutTime = 2 // an event that only orders work

	hostAllocPortable  = 1 // for every context
	hostAllocMapped    = 2 // kernels may read it over the bus
	hostRegisterMapped = 2

	attributeMajor      = 75
	attributeMinor      = 76
	attributeProcessors = 16 // multiprocessors
)

// driver is the functions of libcuda that are used, by what they do. Tests put others in their
// place. Pointers are to memory that stays where it is until the call returns.
type driver struct {
	lib library

	init          func() result
	version       func(v *int32) result
	deviceCount   func(n *int32) result
	deviceGet     func(dev *int32, ordinal int) result
	deviceName    func(name []byte, dev int32) result
	attribute     func(v *int32, attribute int, dev int32) result
	retain        func(ctx *contextHandle, dev int32) result
	release       func(dev int32) result
	setCurrent    func(ctx contextHandle) result
	errorName     func(r result) string
	errorString   func(r result) string
	memInfo       func(free, total *uint64) result
	alloc         func(a *address, n uint64) result
	free          func(a address) result
	hostAlloc     func(p *unsafe.Pointer, n uint64, flags uint32) result
	hostFree      func(p unsafe.Pointer) result
	hostRegister  func(p unsafe.Pointer, n uint64, flags uint32) result
	unregister    func(p unsafe.Pointer) result
	hostAddress   func(a *address, p unsafe.Pointer) result
	copyIn        func(dst address, src unsafe.Pointer, n uint64, s streamHandle) result
	copyOut       func(dst unsafe.Pointer, src address, n uint64, s streamHandle) result
	fill          func(dst address, value byte, n uint64, s streamHandle) result
	streamCreate  func(s *streamHandle, flags uint32) result
	streamDestroy func(s streamHandle) result
	streamSync    func(s streamHandle) result
	eventCreate   func(e *eventHandle, flags uint32) result
	eventDestroy  func(e eventHandle) result
	eventRecord   func(e eventHandle, s streamHandle) result
	eventSync     func(e eventHandle) result
	eventQuery    func(e eventHandle) result // an error if it has not come
	eventElapsed  func(ms *float32, begin, end eventHandle) result
	moduleLoad    func(m *moduleHandle, image []byte) result
	moduleUnload  func(m moduleHandle) result
	function      func(f *functionHandle, m moduleHandle, name string) result
	launch        func(f functionHandle, groups [3]int, threads int, s streamHandle, params *unsafe.Pointer) result

	// what several GPUs need
	canPeer    func(can *int32, dev, peer int32) result
	enablePeer func(peer contextHandle) result // the current context reaches its memory
	copyPeer   func(dst address, to contextHandle, src address, from contextHandle, n uint64, s streamHandle) result
	streamWait func(s streamHandle, e eventHandle) result

	graphCreate  func(g *graphHandle) result
	graphDestroy func(g graphHandle) result
	graphAdd     func(g graphHandle, n *nodeHandle, k *kernelSpec) result
	// each after the one before
	graphOrder func(g graphHandle, nodes []nodeHandle) result
	// the same, so that they may begin before; nil before CUDA 12.3
	graphOverlap     func(g graphHandle, nodes []nodeHandle, edges []edgeData) result
	graphInstantiate func(x *execHandle, g graphHandle) result
	graphExecDestroy func(x execHandle) result
	graphSet         func(x execHandle, n nodeHandle, k *kernelSpec) result
	graphLaunch      func(x execHandle, s streamHandle) result
}

// openDriver opens libcuda and finds its functions.
func openDriver(cfg Config) (*driver, error) {
	s := driverSearch(cfg)
	lib, err := s.open()
	if err != nil {
		return nil, err
	}
	d := &driver{lib: lib}
	sym := &symbols{lib: lib}
	d.bindDevices(sym)
	d.bindMemory(sym)
	d.bindStreams(sym)
	d.bindModules(sym)
	d.bindGraphs(sym)
	d.bindPeers(sym)
	return d, sym.err
}

func (d *driver) bindDevices(s *symbols) {
	initialise, version, count, get, name := s.proc("cuInit"), s.proc("cuDriverGetVersion"), s.proc("cuDeviceGetCount"), s.proc("cuDeviceGet"), s.proc("cuDeviceGetName")
	attribute, retain, release := s.proc("cuDeviceGetAttribute"), s.proc("cuDevicePrimaryCtxRetain"), s.proc("cuDevicePrimaryCtxRelease_v2")
	setCurrent, errorName, errorString := s.quick("cuCtxSetCurrent"), s.proc("cuGetErrorName"), s.proc("cuGetErrorString")

	d.init = func() result { return initialise.call(0) }
	d.version = func(v *int32) result { return version.call(uintptr(unsafe.Pointer(v))) }
	d.deviceCount = func(n *int32) result { return count.call(uintptr(unsafe.Pointer(n))) }
	d.deviceGet = func(dev *int32, ordinal int) result { return get.call(uintptr(unsafe.Pointer(dev)), uintptr(ordinal)) }
	d.deviceName = func(b []byte, dev int32) result {
		return name.call(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(dev))
	}
	d.attribute = func(v *int32, a int, dev int32) result {
		return attribute.call(uintptr(unsafe.Pointer(v)), uintptr(a), uintptr(dev))
	}
	d.retain = func(ctx *contextHandle, dev int32) result {
		return retain.call(uintptr(unsafe.Pointer(ctx)), uintptr(dev))
	}
	d.release = func(dev int32) result { return release.call(uintptr(dev)) }
	d.setCurrent = func(ctx contextHandle) result { return setCurrent.call(uintptr(ctx), 0, 0, 0) }
	text := func(p proc) func(r result) string {
		return func(r result) string {
			var s *byte
			if p.call(uintptr(r), uintptr(unsafe.Pointer(&s))) != success || s == nil {
				return ""
			}
			return cString(s)
		}
	}
	d.errorName, d.errorString = text(errorName), text(errorString)
}

func (d *driver) bindMemory(s *symbols) {
	info, alloc, free := s.proc("cuMemGetInfo_v2"), s.proc("cuMemAlloc_v2"), s.proc("cuMemFree_v2")
	hostAlloc, hostFree, register, unregister := s.proc("cuMemHostAlloc"), s.proc("cuMemFreeHost"), s.proc("cuMemHostRegister_v2"), s.proc("cuMemHostUnregister")
	hostAddress := s.proc("cuMemHostGetDevicePointer_v2")
	copyIn, copyOut, fill := s.quick("cuMemcpyHtoDAsync_v2"), s.quick("cuMemcpyDtoHAsync_v2"), s.quick("cuMemsetD8Async")

	d.memInfo = func(f, t *uint64) result {
		return info.call(uintptr(unsafe.Pointer(f)), uintptr(unsafe.Pointer(t)))
	}
	d.alloc = func(a *address, n uint64) result { return alloc.call(uintptr(unsafe.Pointer(a)), uintptr(n)) }
	d.free = func(a address) result { return free.call(uintptr(a)) }
	d.hostAlloc = func(p *unsafe.Pointer, n uint64, flags uint32) result {
		return hostAlloc.call(uintptr(unsafe.Pointer(p)), uintptr(n), uintptr(flags))
	}
	d.hostFree = func(p unsafe.Pointer) result { return hostFree.call(uintptr(p)) }
	d.hostRegister = func(p unsafe.Pointer, n uint64, flags uint32) result {
		return register.call(uintptr(p), uintptr(n), uintptr(flags))
	}
	d.unregister = func(p unsafe.Pointer) result { return unregister.call(uintptr(p)) }
	d.hostAddress = func(a *address, p unsafe.Pointer) result {
		return hostAddress.call(uintptr(unsafe.Pointer(a)), uintptr(p), 0)
	}
	d.copyIn = func(dst address, src unsafe.Pointer, n uint64, st streamHandle) result {
		return copyIn.call(uintptr(dst), uintptr(src), uintptr(n), uintptr(st))
	}
	d.copyOut = func(dst unsafe.Pointer, src address, n uint64, st streamHandle) result {
		return copyOut.call(uintptr(dst), uintptr(src), uintptr(n), uintptr(st))
	}
	d.fill = func(dst address, value byte, n uint64, st streamHandle) result {
		return fill.call(uintptr(dst), uintptr(value), uintptr(n), uintptr(st))
	}
}

func (d *driver) bindStreams(s *symbols) {
	create, destroy, sync := s.proc("cuStreamCreate"), s.proc("cuStreamDestroy_v2"), s.proc("cuStreamSynchronize")
	eventCreate, eventDestroy, record := s.proc("cuEventCreate"), s.proc("cuEventDestroy_v2"), s.quick("cuEventRecord")
	eventSync, eventQuery, elapsed := s.quick("cuEventSynchronize"), s.quick("cuEventQuery"), s.quick("cuEventElapsedTime")

	d.streamCreate = func(st *streamHandle, flags uint32) result {
		return create.call(uintptr(unsafe.Pointer(st)), uintptr(flags))
	}
	d.streamDestroy = func(st streamHandle) result { return destroy.call(uintptr(st)) }
	d.streamSync = func(st streamHandle) result { return sync.call(uintptr(st)) }
	d.eventCreate = func(e *eventHandle, flags uint32) result {
		return eventCreate.call(uintptr(unsafe.Pointer(e)), uintptr(flags))
	}
	d.eventDestroy = func(e eventHandle) result { return eventDestroy.call(uintptr(e)) }
	d.eventRecord = func(e eventHandle, st streamHandle) result { return record.call(uintptr(e), uintptr(st), 0, 0) }
	d.eventSync = func(e eventHandle) result { return eventSync.call(uintptr(e), 0, 0, 0) }
	d.eventQuery = func(e eventHandle) result { return eventQuery.call(uintptr(e), 0, 0, 0) }
	d.eventElapsed = func(ms *float32, begin, end eventHandle) result {
		return elapsed.call(uintptr(unsafe.Pointer(ms)), uintptr(begin), uintptr(end), 0)
	}
}

func (d *driver) bindModules(s *symbols) {
	load, unload, function := s.proc("cuModuleLoadData"), s.proc("cuModuleUnload"), s.proc("cuModuleGetFunction")
	launch := s.quick("cuLaunchKernel")

	d.moduleLoad = func(m *moduleHandle, image []byte) result {
		return load.call(uintptr(unsafe.Pointer(m)), uintptr(unsafe.Pointer(unsafe.SliceData(image))))
	}
	d.moduleUnload = func(m moduleHandle) result { return unload.call(uintptr(m)) }
	d.function = func(f *functionHandle, m moduleHandle, name string) result {
		text := append([]byte(name), 0)
		return function.call(uintptr(unsafe.Pointer(f)), uintptr(m), uintptr(unsafe.Pointer(&text[0])))
	}
	d.launch = func(f functionHandle, groups [3]int, threads int, st streamHandle, params *unsafe.Pointer) result {
		return launch.launch(f, groups, threads, st, uintptr(unsafe.Pointer(params)))
	}
}

func (d *driver) bindGraphs(s *symbols) {
	create, destroy, add := s.proc("cuGraphCreate"), s.proc("cuGraphDestroy"), s.proc("cuGraphAddKernelNode_v2")
	order, overlap := s.proc("cuGraphAddDependencies"), s.optional("cuGraphAddDependencies_v2")
	instantiate, execDestroy := s.proc("cuGraphInstantiateWithFlags"), s.proc("cuGraphExecDestroy")
	set, launch := s.quick("cuGraphExecKernelNodeSetParams_v2"), s.quick("cuGraphLaunch")

	d.graphCreate = func(g *graphHandle) result { return create.call(uintptr(unsafe.Pointer(g)), 0) }
	d.graphDestroy = func(g graphHandle) result { return destroy.call(uintptr(g)) }
	d.graphAdd = func(g graphHandle, n *nodeHandle, k *kernelSpec) result {
		return add.call(uintptr(unsafe.Pointer(n)), uintptr(g), 0, 0, uintptr(unsafe.Pointer(k)))
	}
	d.graphOrder = func(g graphHandle, nodes []nodeHandle) result {
		return order.call(uintptr(g), uintptr(unsafe.Pointer(&nodes[0])), uintptr(unsafe.Pointer(&nodes[1])), uintptr(len(nodes)-1))
	}
	if overlap != 0 {
		d.graphOverlap = func(g graphHandle, nodes []nodeHandle, edges []edgeData) result {
			return overlap.call(uintptr(g), uintptr(unsafe.Pointer(&nodes[0])), uintptr(unsafe.Pointer(&nodes[1])), uintptr(unsafe.Pointer(&edges[0])),
				uintptr(len(nodes)-1))
		}
	}
	d.graphInstantiate = func(x *execHandle, g graphHandle) result {
		return instantiate.call(uintptr(unsafe.Pointer(x)), uintptr(g), 0)
	}
	d.graphExecDestroy = func(x execHandle) result { return execDestroy.call(uintptr(x)) }
	d.graphSet = func(x execHandle, n nodeHandle, k *kernelSpec) result {
		return set.call(uintptr(x), uintptr(n), uintptr(unsafe.Pointer(k)), 0)
	}
	d.graphLaunch = func(x execHandle, st streamHandle) result { return launch.call(uintptr(x), uintptr(st), 0, 0) }
}

// cString copies a zero-terminated string of C's.
func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
