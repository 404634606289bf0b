package serveload

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// vitals are the signs of life of a server, as its /metrics has them.
type vitals struct {
	goroutines, files int
	resident          int64 // bytes of memory
}

// lookEvery is the time between two looks at the signs.
const lookEvery = 500 * time.Millisecond

// course is how the signs were.
type course struct {
	before, peak, after vitals
	// early and late are the most memory in the second and in the last quarter of the load.
	early, late int64
	seen        []int64 // bytes of memory at each look
	err         error   // of the first look that failed
}

// watcher looks at the signs again and again.
type watcher struct {
	client *client
	cancel context.CancelFunc
	over   sync.WaitGroup
	course course
}

// watch begins to watch.
func watch(ctx context.Context, c *client) (*watcher, error) {
	before, err := c.vitals(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{client: c, cancel: cancel, course: course{before: before, peak: before}}
	w.over.Go(func() {
		for wait(ctx, lookEvery); ctx.Err() == nil; wait(ctx, lookEvery) {
			v, err := c.vitals(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				w.course.err = err
				return
			}
			w.course.add(v)
		}
	})
	return w, nil
}

func (c *course) add(v vitals) {
	c.seen = append(c.seen, v.resident)
	c.peak = vitals{max(c.peak.goroutines, v.goroutines), max(c.peak.files, v.files), max(c.peak.resident, v.resident)}
}

// settle stops the watching and waits until the server has as few goroutines and files as before,
// or has had the time for it.
func (w *watcher) settle(ctx context.Context, calm time.Duration) {
	w.cancel()
	w.over.Wait()
	for until := time.Now().Add(calm); w.course.err == nil; wait(ctx, lookEvery) {
		w.course.after, w.course.err = w.client.vitals(ctx)
		if w.course.leak() == "" || time.Now().After(until) || ctx.Err() != nil {
			return
		}
	}
}

func (w *watcher) stop() course {
	c := w.course
	if n := len(c.seen); n >= 4 {
		c.early, c.late = slices.Max(c.seen[n/4:n/2]), slices.Max(c.seen[3*n/4:])
	}
	return c
}

// The goroutines and files that a server may have more than before: those of the runtime and of
// the connection that asks for the figures come and go.
const (
	moreGoroutines = 6
	moreFiles      = 4
)

// leak says what there is more of than before the load; "" if nothing.
func (c *course) leak() string {
	switch {
	case c.after.goroutines > c.before.goroutines+moreGoroutines:
		return fmt.Sprintf("%d goroutines are left, and there were %d before", c.after.goroutines, c.before.goroutines)
	case c.after.files > c.before.files+moreFiles:
		return fmt.Sprintf("%d files are left open, and there were %d before", c.after.files, c.before.files)
	}
	return ""
}

// vitals reads them.
func (c *client) vitals(ctx context.Context) (v vitals, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/metrics", nil)
	if err != nil {
		return v, err
	}
	req.Header.Set("Authorization", "Bearer "+adminSecret)
	resp, err := c.http.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	found := make(map[string]float64)
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		if name, value, ok := strings.Cut(in.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			found[name], _ = strconv.ParseFloat(value, 64) // figures that are wanted are checked below
		}
	}
	for _, name := range []string{"go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
		if found[name] == 0 {
			return v, fmt.Errorf("GET /metrics says no %s (status %d): the key %s must be an admin's, and the system Linux", name, resp.StatusCode, adminSecret)
		}
	}
	return vitals{int(found["go_goroutines"]), int(found["process_open_fds"]), int64(found["process_resident_memory_bytes"])}, in.Err()
}
