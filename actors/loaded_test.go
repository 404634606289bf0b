package actors_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// TestLoadedReads opens engines that load all experts. Each is read once, or once more if that
// fails; a record that is wrong twice is the error of Open. open and device check that nothing is
// left behind.
func TestLoadedReads(t *testing.T) {
	fault := func(f readpool.Fault) []readpool.Fault { return []readpool.Fault{f} }
	fails := readpool.Fault{Read: 7, Kind: readpool.Fail}
	failsAgain := readpool.Fault{Read: 7, Kind: readpool.Fail, Again: 1}
	corrupt := readpool.Fault{Read: 7, Kind: readpool.Corrupt, Bit: 77}
	corruptAgain := readpool.Fault{Read: 7, Kind: readpool.Corrupt, Bit: 77, Again: 1}
	injected := readpool.ErrInjected.Error()
	for _, c := range []struct {
		name     string
		discrete bool
		faults   []readpool.Fault
		reads    int // more than there are experts
		want     string
	}{
		{name: "good"},
		{name: "good, to a device", discrete: true},
		{name: "fails once", faults: fault(fails), reads: 1},
		{name: "fails once, to a device", discrete: true, faults: fault(fails), reads: 1},
		{name: "corrupt once", faults: fault(corrupt), reads: 1},
		{name: "fails twice", faults: fault(failsAgain), want: injected},
		{name: "fails twice, to a device", discrete: true, faults: fault(failsAgain), want: injected},
		{name: "corrupt twice", faults: fault(corruptAgain), want: "CRC32C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := device(t, 2)
			dir := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
			cfg := actors.Config{Model: dir, Device: host, ExpertIO: actors.ExpertIOLoaded}
			if c.discrete {
				cfg.Device = &discrete{Device: host, free: 1 << 30}
			}
			var faulty *readpool.Faulty
			cfg = actors.WithReads(cfg, func(src readpool.Source) readpool.Source {
				faulty = readpool.NewFaulty(src, c.faults...)
				return faulty
			})
			if c.want != "" {
				e, err := actors.Open(context.Background(), cfg)
				if err == nil {
					e.Close(context.Background())
				}
				for _, want := range []string{"loading experts", c.want} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("opening gives %v, want an error with %q", err, want)
					}
				}
				return
			}
			e := open(t, cfg)
			all := len(e.Model().MoELayers()) * e.Model().NumExperts
			sameTranscript(t, c.name, sequence(t, e), wantTranscript(t))
			n, verified := faulty.Reads(), e.Info().VerifyReads
			if n != all+c.reads || !verified {
				t.Errorf("%d reads of %d experts, verified: %v; want %d more", n, all, verified, c.reads)
			}
		})
	}
}

// TestLoadedFiles opens models whose files are damaged: the error names the file.
func TestLoadedFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(path string) error
		is     func(error) bool
	}{
		{"changed", flip, is[*expertfile.SumError]},
		{"changed, without checksums", func(path string) error {
			sums := filepath.Join(filepath.Dir(path), expertfile.SumsName)
			return errors.Join(flip(path), os.Remove(sums))
		}, nil},
	} {
		dir := copyModel(t, fixtures.Qwen35MoEBF16)
		path := filepath.Join(dir, "packed_experts", "layer_01.bin")
		if err := c.damage(path); err != nil {
			t.Fatal(err)
		}
		cfg := actors.Config{Model: dir, Device: device(t, 2), ExpertIO: actors.ExpertIOLoaded}
		e, err := actors.Open(context.Background(), cfg)
		if err == nil {
			e.Close(context.Background())
		}
		switch read := (*expertfile.ReadError)(nil); {
		case c.is == nil && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.is != nil && (!c.is(err) || !errors.As(err, &read) || read.Path != path):
			t.Errorf("%s: %v, want the error of %s", c.name, err, path)
		}
	}
}

// TestLoadingEnds cancels an opening while a read of an expert hangs: Open returns at once, and the
// other experts are not read when the disk answers.
func TestLoadingEnds(t *testing.T) {
	release, reading := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var faulty *readpool.Faulty
	dev := device(t, 2)
	slow := readpool.Fault{Read: 3, Kind: readpool.Slow, Release: release}
	cfg := actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: dev,
		ExpertIO: actors.ExpertIOLoaded, ReadWorkers: 1,
	}
	cfg = actors.WithReads(cfg, func(src readpool.Source) readpool.Source {
		faulty = readpool.NewFaulty(src, slow)
		close(reading)
		return faulty
	})
	ended := make(chan error)
	go func() {
		e, err := actors.Open(ctx, cfg)
		if err == nil {
			e.Close(context.Background())
		}
		ended <- err
	}()
	<-reading
	for faulty.Reads() < 3 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	err, under := <-ended, (*actors.UnfinishedError)(nil)
	if !errors.Is(err, context.Canceled) || !errors.As(err, &under) {
		t.Errorf("opening ends with %v", err)
	}
	close(release)
	if under != nil {
		<-under.Ended
	}
	if n := faulty.Reads(); n > 5 {
		t.Errorf("%d experts were read for an engine that nobody waits for", n)
	}
}
