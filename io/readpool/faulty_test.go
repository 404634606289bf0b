package readpool

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Whichever read goes wrong, and however, exactly that request gets the error (or the wrong bit),
// and all others are right.
func TestEveryReadMayGoWrong(t *testing.T) {
	const reads = 6
	cause := errors.New("the disk is gone")
	for _, tc := range []struct {
		fault Fault
		cause error // nil: the read succeeds
		bits  int   // that differ
	}{
		{Fault{Kind: Fail}, ErrInjected, -1},
		{Fault{Kind: Fail, Err: cause}, cause, -1},
		{Fault{Kind: Short}, io.ErrUnexpectedEOF, -1},
		{Fault{Kind: Panic}, ErrInjected, -1},
		{Fault{Kind: Corrupt, Bit: 1234564}, nil, 1},
		{Fault{Kind: Slow}, nil, 0},
	} {
		for n := 1; n <= reads; n++ {
			t.Run(fmt.Sprintf("kind=%s/n=%d", tc.fault.Kind, n), func(t *testing.T) {
				fault := tc.fault
				fault.Read = n
				second := 0
				if fault.Kind == Fail || fault.Kind == Short {
					fault.Again, second = 1, 1 // the second try fails, too
				}
				f := NewFaulty(stamp{}, fault)
				// one worker reads in order, so that the n-th read is the n-th request
				p := New(f, Config{Workers: 1})
				reqs := requests(2, reads)
				errs := readAll(p, reqs, Demand)
				p.Close()
				for i, r := range reqs {
					diff := differingBits(r.Dst, want(2, i, len(r.Dst)))
					if i != n-1 {
						if errs[i] != nil || diff != 0 {
							t.Errorf("request %d: error %v, %d wrong bits; only request %d should suffer", i, errs[i], diff, n-1)
						}
						continue
					}
					if !errors.Is(errs[i], tc.cause) {
						t.Errorf("request %d: got error %v, want cause %v", i, errs[i], tc.cause)
					}
					if tc.bits >= 0 && diff != tc.bits || tc.cause != nil && tc.fault.Kind != Panic && diff == 0 {
						t.Errorf("request %d: %d wrong bits, want %d (-1: some)", i, diff, tc.bits)
					}
					if fe, ok := errors.AsType[*FaultError](errs[i]); tc.cause != nil && (!ok || fe.Read != n+second || fe.Expert != i) {
						t.Errorf("request %d: got %#v, want a FaultError of read %d", i, errs[i], n+second)
					}
				}
				if f.Reads() != reads+second {
					t.Errorf("counted %d reads, want %d", f.Reads(), reads+second)
				}
			})
		}
	}
}

func differingBits(a, b []byte) int {
	n := 0
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// With several workers the n-th read is whichever begins n-th: exactly one fails, whoever asked for
// it.
func TestFaultHitsOnceInParallel(t *testing.T) {
	f := NewFaulty(stamp{}, Fault{Read: 5, Kind: Short, Again: 1})
	p := New(f, Config{Workers: 8})
	defer p.Close()
	errs := readAll(p, requests(0, 32), Demand)
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) != 1 || !errors.Is(failed[0], io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want exactly one short read", failed)
	}
}

func TestSlowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := NewFaulty(stamp{}, Fault{Read: 2, Kind: Slow, Release: release, Delay: time.Minute}, Fault{Read: 2, Kind: Fail})
		began := time.Now()
		errs := make(chan error, 2)
		for i := range 2 {
			go func() { errs <- f.ReadExpert(0, i, make([]byte, 8)) }()
			synctest.Wait()
		}
		if len(errs) != 1 || <-errs != nil {
			t.Fatal("the first read should be over, the second waiting")
		}
		close(release)
		if err := <-errs; !errors.Is(err, ErrInjected) {
			t.Errorf("got %v, want the fault after the wait", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %v, want 1m0s", took)
		}
	})
}

// An error of the wrapped Source is passed on unchanged.
func TestFaultyPassesErrorsOn(t *testing.T) {
	cause := errors.New("cause")
	src := sourceFunc(func(int, int, []byte) error { return cause })
	for _, kind := range []FaultKind{Slow, Corrupt, Short} {
		if err := NewFaulty(src, Fault{Kind: kind}).ReadExpert(0, 0, nil); err != cause {
			t.Errorf("%s: got %v, want %v", kind, err, cause)
		}
	}
}
