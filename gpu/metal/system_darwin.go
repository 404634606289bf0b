//go:build cgo

package metal

// #cgo LDFLAGS: -framework Metal -framework CoreGraphics -framework Foundation
// #include "encode.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/progrium/darwinkit/macos/foundation"
	"github.com/progrium/darwinkit/macos/metal"
	"github.com/progrium/darwinkit/objc"
)

// languageVersion is that of the Metal Shading Language, 3.0: the first in which structs in memory
// have pointers. darwinkit's constants end before.
const languageVersion metal.LanguageVersion = 3 << 16

// The structs that C reads and writes have the sizes of those of encode.h.
var (
	_ [unsafe.Sizeof(launchEntry{})]byte = [unsafe.Sizeof(C.metal_launch{})]byte{}
	_ [unsafe.Sizeof(argEntry{})]byte    = [unsafe.Sizeof(C.metal_arg{})]byte{}
	_ [unsafe.Sizeof(target{})]byte      = [unsafe.Sizeof(C.metal_target{})]byte{}
	_ [unsafe.Sizeof(result{})]byte      = [unsafe.Sizeof(C.metal_result{})]byte{}
	_ [unsafe.Sizeof(facts{})]byte       = [unsafe.Sizeof(C.metal_facts{})]byte{}
)

// gpuSystem is the system's GPU.
type gpuSystem struct {
	device metal.DeviceObject
	label  string
	what   facts

	mu        sync.Mutex
	residents objc.Object // MTLResidencySet of all buffers
}

var _ system = (*gpuSystem)(nil)

// Open opens the Mac's GPU. Where there is none the error wraps ErrNoDevice.
func Open() (*Device, error) {
	s, err := openSystem()
	if err != nil {
		return nil, err
	}
	return newDevice(s)
}

func openSystem() (s *gpuSystem, err error) {
	p := C.metal_device()
	if p == nil {
		return nil, fmt.Errorf("metal: %w that programs may use", ErrNoDevice)
	}
	s = &gpuSystem{device: metal.DeviceObject{Object: objc.ObjectFrom(p)}}
	C.metal_describe(p, (*C.metal_facts)(unsafe.Pointer(&s.what)))
	objc.WithAutoreleasePool(func() {
		s.label = s.device.Name()
		if s.what.residencySets != 0 {
			s.residents, err = s.newResidencySet()
		}
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// newResidencySet makes an empty set. It runs inside an autorelease pool.
func (s *gpuSystem) newResidencySet() (objc.Object, error) {
	descriptor := objc.Call[objc.Object](objc.GetClass(residencySetClass), objc.Sel(newMessage))
	defer descriptor.Release()
	var failed foundation.Error
	set := objc.Call[objc.Object](s.device, objc.Sel(newResidencySetMessage), descriptor, unsafe.Pointer(&failed))
	if set.IsNil() {
		return set, fmt.Errorf("metal: a residency set on %s: %w", s.label, said(failed))
	}
	return set, nil
}

// said is what an NSError says.
func said(e foundation.Error) error {
	if e.IsNil() {
		return errors.New("no reason is given")
	}
	return errors.New(e.LocalizedDescription())
}

func (s *gpuSystem) name() string { return s.label }

func (s *gpuSystem) facts() facts { return s.what }

func (s *gpuSystem) pageSize() int { return os.Getpagesize() }

// compile makes a pipeline, with Metal's precise functions and arithmetic.
func (s *gpuSystem) compile(source, kernel string) (c compiled, err error) {
	objc.WithAutoreleasePool(func() {
		options := metal.NewCompileOptions()
		options.SetLanguageVersion(languageVersion)
		options.SetFastMathEnabled(false)
		var failed foundation.Error
		library := s.device.NewLibraryWithSourceOptionsError(source, options, unsafe.Pointer(&failed))
		if library.IsNil() {
			err = said(failed)
			return
		}
		defer library.Release()
		function := library.NewFunctionWithName(kernel)
		if function.IsNil() {
			err = fmt.Errorf("the library has no function %s", kernel)
			return
		}
		defer function.Release()
		p := objc.Call[metal.ComputePipelineStateObject](s.device, objc.Sel(newPipelineMessage), function, unsafe.Pointer(&failed))
		if p.IsNil() {
			err = said(failed)
			return
		}
		c = compiled{p.Ptr(), int(p.ThreadExecutionWidth()), int(p.MaxTotalThreadsPerThreadgroup())}
	})
	return c, err
}

// wrap makes a buffer that host and GPU share, whose hazards Metal does not track.
func (s *gpuSystem) wrap(at uintptr, n int) (buffer object, address uint64) {
	var found C.uint64_t
	options := metal.ResourceStorageModeShared | metal.ResourceHazardTrackingModeUntracked
	buffer = C.metal_wrap(s.device.Ptr(), C.uintptr_t(at), C.uint64_t(n), C.uint64_t(options), &found)
	if buffer != nil {
		s.resident(addAllocationMessage, buffer)
	}
	return buffer, uint64(found)
}

// resident sends a message about a buffer to the residency set, and has it take effect.
func (s *gpuSystem) resident(message string, buffer object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objc.WithAutoreleasePool(func() {
		objc.Call[objc.Void](s.residents, objc.Sel(message), objc.ObjectFrom(buffer))
		objc.Call[objc.Void](s.residents, objc.Sel(commitAllocationsMessage))
	})
}

func (s *gpuSystem) unwrap(buffer object) {
	s.resident(removeAllocationMessage, buffer)
	s.release(buffer)
}

func (s *gpuSystem) newQueue() (queue, fence object, err error) {
	objc.WithAutoreleasePool(func() {
		q, f := s.device.NewCommandQueue(), s.device.NewFence()
		if q.IsNil() || f.IsNil() {
			err = fmt.Errorf("metal: %s gives no command queue or no fence", s.label)
			for _, o := range []object{q.Ptr(), f.Ptr()} {
				if o != nil {
					s.release(o)
				}
			}
			return
		}
		objc.Call[objc.Void](q, objc.Sel(addResidencySetMessage), s.residents)
		queue, fence = q.Ptr(), f.Ptr()
	})
	return queue, fence, err
}

// submit hands the table to C, whose structs have the layout of those here.
func (s *gpuSystem) submit(to *target, t *table, ticket uint64) (commandBuffer object) {
	return C.metal_submit((*C.metal_target)(unsafe.Pointer(to)), (*C.metal_launch)(unsafe.Pointer(unsafe.SliceData(t.launches))), C.uint64_t(len(t.launches)),
		(*C.metal_arg)(unsafe.Pointer(unsafe.SliceData(t.args))), (*C.uint8_t)(unsafe.SliceData(t.constants)), C.uint64_t(ticket))
}

func (s *gpuSystem) finish(commandBuffer object, r *result) {
	C.metal_finish(commandBuffer, (*C.metal_result)(unsafe.Pointer(r)))
}

func (s *gpuSystem) release(o object) { C.metal_release(o) }

func (s *gpuSystem) close() {
	if !s.residents.IsNil() {
		s.residents.Release()
	}
	s.device.Release()
}
