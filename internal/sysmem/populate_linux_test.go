package sysmem

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPopulate populates the middle of some memory: its pages, those at both ends that it has only a part of included, are there then, others are
// not, and what they hold stays.
func TestPopulate(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 8*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Fatal(err)
	}
	mem[3*page] = 7
	if err := Populate(mem[2*page+1 : 5*page+1]); errors.Is(err, errors.ErrUnsupported) {
		t.Logf("this kernel does not populate: %v", err)
		return
	} else if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(unsafe.Pointer(&got[0]))); e != 0 {
		t.Fatal(e)
	}
	if want := []byte{0, 0, 1, 1, 1, 1, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("pages in memory: %v, want %v", got, want)
	}
	if mem[3*page] != 7 {
		t.Error("what a page held is gone")
	}
	if err := Populate(nil); err != nil {
		t.Errorf("no memory: %v", err)
	}
	if err := unix.Mprotect(mem, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := Populate(mem); err == nil {
		t.Error("memory that cannot be written: no error")
	}
}

// TestYieldThread holds that only the thread that asked for it gives way.
func TestYieldThread(t *testing.T) {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := YieldThread(); err != nil {
			t.Error(err)
		}
		now, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		done <- now
	}()
	if now, want := <-done, min(before, 20-yieldNice); now != want { // the call returns 20 less the niceness
		t.Errorf("priority %d, want %d", now, want)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if after, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()); after != before {
		t.Errorf("another thread has priority %d, had %d", after, before)
	}
}
