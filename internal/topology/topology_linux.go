package topology

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Here returns the machine as the calling thread may use it.
func Here() (Machine, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("topology: which processors this process may use: %w", err)
	}
	var allowed []int
	for id := range 8 * len(set) * int(unsafe.Sizeof(set[0])) {
		if set.IsSet(id) {
			allowed = append(allowed, id)
		}
	}
	return Read(os.DirFS("/sys/devices/system"), allowed)
}

// Bind has the calling thread run on one processor alone. The caller has locked its goroutine to
// the thread, and does not unlock it: a thread that ends takes the binding with it.
func Bind(id int) error {
	var set unix.CPUSet
	set.Set(id)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("topology: binding a thread to processor %d: %w", id, err)
	}
	return nil
}

// interleaved is the kernel's MPOL_INTERLEAVE.
const interleaved = 3

// Interleave spreads the pages of memory that nobody has touched over nodes by turns. mem begins at
// a page.
func Interleave(mem []byte, nodes []int) error {
	if len(mem) == 0 || len(nodes) == 0 {
		return nil
	}
	const bits = 8 * unsafe.Sizeof(uintptr(0))
	mask := make([]uintptr, uintptr(nodes[len(nodes)-1])/bits+1)
	for _, n := range nodes {
		mask[uintptr(n)/bits] |= 1 << (uintptr(n) % bits)
	}
	// The kernel reads one bit less than it is told of.
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), interleaved,
		uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask))*bits+1, 0)
	if errno != 0 {
		return fmt.Errorf("topology: spreading %d bytes over %d nodes: %w", len(mem), len(nodes), errno)
	}
	return nil
}
