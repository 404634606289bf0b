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
	for _, c := range []struct {
		name     string
		discrete bool
		faults   []readpool.Fault
		reads    int // more than there are experts
		want     string
	}{
		{name: "good"},
		{name: "good, to a device", discrete: true},
		{name: "fails once", faults: []readpool.Fault{{Read: 7, Kind: readpool.Fail}}, reads: 1},
		{name: "fails once, to a device", discrete: true, faults: []readpool.Fault{{Read: 7, Kind: readpool.Fail}}, reads: 1},
		{name: "corrupt once", faults: []readpool.Fault{{Read: 7, Kind: readpool.Corrupt, Bit: 77}}, reads: 1},
		{name: "fails twice", faults: []readpool.Fault{{Read: 7, Kind: readpool.Fail, Again: 1}}, want: readpool.ErrInjected.Error()},
		{name: "fails twice, to a device", discrete: true, faults: []readpool.Fault{{Read: 7, Kind: readpool.Fail, Again: 1}}, want: readpool.ErrInjected.Error()},
		{name: "corrupt twice", faults: []readpool.Fault{{Read: 7, Kind: readpool.Corrupt, Bit: 77, Again: 1}}, want: "CRC32C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := device(t, 2)
			cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: host, ExpertIO: actors.ExpertIOLoaded}
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
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "loading experts") {
					t.Errorf("opening gives %v, want an error with %q", err, c.want)
				}
				return
			}
			e := open(t, cfg)
			all := len(e.Model().MoELayers()) * e.Model().NumExperts
			sameTranscript(t, c.name, sequence(t, e), wantTranscript(t))
			if n := faulty.Reads(); n != all+c.reads || !e.Info().VerifyReads {
				t.Errorf("%d reads of %d experts, verified: %v; want %d more", n, all, e.Info().VerifyReads, c.reads)
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
			return errors.Join(flip(path), os.Remove(filepath.Join(filepath.Dir(path), expertfile.SumsName)))
		}, nil},
	} {
		dir := copyModel(t, fixtures.Qwen35MoEBF16)
		path := filepath.Join(dir, "packed_experts", "layer_01.bin")
		if err := c.damage(path); err != nil {
			t.Fatal(err)
		}
		e, err := actors.Open(context.Background(), actors.Config{Model: dir, Device: device(t, 2), ExpertIO: actors.ExpertIOLoaded})
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
	cfg := actors.WithReads(actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Device: dev, ExpertIO: actors.ExpertIOLoaded, ReadWorkers: 1}, func(src readpool.Source) readpool.Source {
		faulty = readpool.NewFaulty(src, readpool.Fault{Read: 3, Kind: readpool.Slow, Release: release})
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
