package membw

import (
	"runtime"
	"sync"
)

// threads are goroutines with an operating system thread each.
type threads struct {
	work  []chan func()
	ended sync.WaitGroup
}

func startThreads(n int) *threads {
	t := &threads{}
	for range n {
		work := make(chan func())
		t.work = append(t.work, work)
		t.ended.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			for f := range work {
				f()
			}
		})
	}
	return t
}

// all runs f on every thread at once and waits for them.
func (t *threads) all(f func()) {
	var done sync.WaitGroup
	for _, work := range t.work {
		done.Add(1)
		work <- func() {
			defer done.Done()
			f()
		}
	}
	done.Wait()
}

// end stops the threads and waits for them.
func (t *threads) end() {
	for _, work := range t.work {
		close(work)
	}
	t.ended.Wait()
}
