package topology

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestBind binds a thread to each processor that this process may use, and asks where it may run.
func TestBind(t *testing.T) {
	m, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	if len(m) < runtime.NumCPU() {
		t.Errorf("%d processors, want %d", len(m), runtime.NumCPU())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for _, p := range m {
			if err := Bind(p.ID); err != nil {
				t.Error(err)
				return
			}
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() != 1 || !set.IsSet(p.ID) {
				t.Errorf("bound to %d: %d processors, %v", p.ID, set.Count(), err)
			}
		}
		if err := Bind(1 << 9); err == nil && len(m) < 1<<9 {
			t.Error("a thread is bound to a processor that is not there")
		}
	}()
	<-done
}

// TestInterleave spreads memory over the nodes here and asks the kernel how it places it.
func TestInterleave(t *testing.T) {
	m, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	err = Interleave(mem, m.Nodes())
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("this kernel does not place memory: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	const atAddress = 2 // MPOL_F_ADDR
	var mode int32
	var mask [1 << 7]uintptr
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&mask[0])),
		8*unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mem[0])), atAddress, 0)
	if errno != 0 || mode != interleaved {
		t.Fatalf("mode %d, want %d: %v", mode, interleaved, errno)
	}
	for i := range 8 * int(unsafe.Sizeof(mask)) {
		const bits = 8 * int(unsafe.Sizeof(mask[0]))
		if got := mask[i/bits]>>(i%bits)&1 == 1; got != slices.Contains(m.Nodes(), i) {
			t.Errorf("node %d has pages: %v", i, got)
		}
	}
	if err := Interleave(mem, []int{1000}); err == nil {
		t.Error("memory is spread over a node that is not there")
	}
}
