package serveload

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// noKey is the number of the crowd's key.
const noKey = -1

// Limits are what a report must keep to.
type Limits struct {
	// Fairness is the least of Jain's index of the tokens of the keys of Load.Fair; 0 means 0.95.
	Fairness float64
	// Silence is the most of the 99th percentile of the longest silence of each stream; 0 means
	// 3 s.
	Silence time.Duration
	// Memory is the most that the server may have resident; 0: any.
	Memory int64
	// Growth is how much more it may have in the last quarter of the load than in the second; 0
	// means 48 MiB.
	Growth int64
}

// Report says how a load went. Its fields are set when Run has returned.
type Report struct {
	Questions int
	Broken    []string // which limits

	load   Load          // with the limits that hold
	asked  time.Duration // in which clients asked
	took   time.Duration // until the last of them had its answer
	vitals course

	mu      sync.Mutex
	counts  map[string]*[kinds]int // by behaviour
	tokens  []int                  // by key of Load.Fair, of answers that ended before clients stopped
	served  int                    // tokens of all answers
	details []string               // of what was wrong, some of it
	streams streamTimes
}

// streamTimes are of the streams that patient clients read to the end.
type streamTimes struct {
	firsts   []time.Duration // until the first text
	silences []time.Duration // the longest of each
}

func newReport(l *Load) *Report {
	r := &Report{load: *l, counts: make(map[string]*[kinds]int), tokens: make([]int, len(l.Fair))}
	limits := &r.load.Limits
	limits.Fairness = cmp.Or(limits.Fairness, 0.95)
	limits.Silence = cmp.Or(limits.Silence, 3*time.Second)
	limits.Growth = cmp.Or(limits.Growth, 48<<20)
	return r
}

// mostDetails bounds how many mistakes are printed in full.
const mostDetails = 10

// add adds what came of a request; inTime says that clients still ask.
func (r *Report) add(key int, b behaviour, o outcome, inTime bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.counts[b.String()]
	if of == nil {
		of = new([kinds]int)
		r.counts[b.String()] = of
	}
	of[o.kind]++
	r.served += o.tokens
	if key != noKey && inTime {
		r.tokens[key] += o.tokens
	}
	if o.kind >= wrong && len(r.details) < mostDetails {
		r.details = append(r.details, fmt.Sprintf("%s, who %s: %s", kindNames[o.kind], b, o.detail))
	}
	if o.first > 0 {
		r.streams.firsts = append(r.streams.firsts, o.first)
		r.streams.silences = append(r.streams.silences, o.silence)
	}
}

// total returns how many requests ended so.
func (r *Report) total(k kind) (n int) {
	for _, of := range r.counts {
		n += of[k]
	}
	return n
}

// Fairness returns Jain's index of the tokens of the keys: 1 if all have the same, 1/n if one has
// all.
func (r *Report) Fairness() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range r.tokens {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / squares / float64(len(r.tokens))
}

// judge sets Broken.
func (r *Report) judge() {
	limits := &r.load.Limits
	broken := func(is bool, format string, args ...any) {
		if is {
			r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
		}
	}
	broken(r.total(answered) == 0, "no request was answered")
	for k := wrong; k < kinds; k++ {
		broken(r.total(k) > 0, "%d requests are %s", r.total(k), kindNames[k])
	}
	if len(r.tokens) > 0 {
		broken(r.Fairness() <= limits.Fairness, "Jain's index of the keys' tokens is %.3f, not above %v", r.Fairness(), limits.Fairness)
	}
	silence := percentile(r.streams.silences, 99)
	broken(silence >= limits.Silence, "the 99th percentile of the longest silence of a stream is %.2f s, not below %v", silence.Seconds(), limits.Silence)
	v := &r.vitals
	broken(v.err != nil, "the server's signs of life could not be read: %v", v.err)
	broken(len(v.seen) == 0 && r.took > 10*lookEvery, "the server's figures were never read while it was loaded")
	broken(v.leak() != "", "%s", v.leak())
	broken(limits.Memory > 0 && v.peak.resident > limits.Memory, "the server had %s resident; %s are allowed", mib(v.peak.resident), mib(limits.Memory))
	broken(v.late > v.early+limits.Growth, "memory grows: %s in the second quarter, %s in the last", mib(v.early), mib(v.late))
}

// percentile returns the smallest value that so many percent of all do not exceed; 0 of none.
func percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[max(0, (len(all)*percent+99)/100-1)]
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Print writes the report.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%d clients asked for %.0f s, and had their last answers after %.0f s; %d questions were asked alone before\n\n", r.load.Clients, r.asked.Seconds(), r.took.Seconds(), r.Questions)
	r.printCounts(w)
	fmt.Fprintf(w, "\ntokens         %d, %.0f a second\n", r.served, float64(r.served)/r.took.Seconds())
	if len(r.tokens) > 0 {
		fmt.Fprintf(w, "fairness       %.4f (Jain's index of %d tokens of keys with %d clients)\n", r.Fairness(), r.tokens, r.load.Fair)
	}
	times := func(name string, all []time.Duration) {
		fmt.Fprintf(w, "%-14s 50 %%: %.2f s, 90 %%: %.2f s, 99 %%: %.2f s, all: %.2f s (%d streams)\n", name,
			percentile(all, 50).Seconds(), percentile(all, 90).Seconds(), percentile(all, 99).Seconds(), percentile(all, 100).Seconds(), len(all))
	}
	times("first text", r.streams.firsts)
	times("silence", r.streams.silences)
	v := &r.vitals
	fmt.Fprintf(w, "goroutines     %d before, %d at most, %d after\n", v.before.goroutines, v.peak.goroutines, v.after.goroutines)
	fmt.Fprintf(w, "files          %d before, %d at most, %d after\n", v.before.files, v.peak.files, v.after.files)
	fmt.Fprintf(w, "memory         %s before, %s at most, %s after; second quarter %s, last quarter %s (%d looks)\n", mib(v.before.resident), mib(v.peak.resident), mib(v.after.resident), mib(v.early), mib(v.late), len(v.seen))
	for _, d := range r.details {
		fmt.Fprintln(w, "  "+d)
	}
	for _, b := range r.Broken {
		fmt.Fprintln(w, "BROKEN: "+b)
	}
	if len(r.Broken) == 0 {
		fmt.Fprintln(w, "every limit is kept")
	}
}

// printCounts writes how requests ended, by behaviour.
func (r *Report) printCounts(w io.Writer) {
	fmt.Fprintf(w, "%-16s", "")
	for _, name := range kindNames {
		fmt.Fprintf(w, "%9s", name)
	}
	fmt.Fprintln(w)
	row := func(name string, of func(kind) int) {
		fmt.Fprintf(w, "%-16s", name)
		for k := range kinds {
			fmt.Fprintf(w, "%9d", of(k))
		}
		fmt.Fprintln(w)
	}
	for _, b := range crowd {
		if of := r.counts[b.String()]; of != nil {
			row(b.String(), func(k kind) int { return of[k] })
		}
	}
	row("all", r.total)
}
