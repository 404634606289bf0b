package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// measurer makes models and measures rows.
type measurer struct {
	o        *options
	groups   *groups
	progress io.Writer
	made     int // groups, for their names
}

// row is one line of the table.
type row struct {
	Shape      string      `json:"shape"`
	Route      string      `json:"route"`
	Share      int         `json:"share_percent"`
	ModelBytes int64       `json:"model_bytes"`
	Limit      int64       `json:"limit_bytes"`
	Layers     int         `json:"layers,omitempty"` // 0 for the shape's own
	Doctor     *doctor     `json:"doctor"`
	Runs       []*benchRun `json:"runs"`

	dir string
}

// doctor is the part of doctor --json that measure uses.
type doctor struct {
	Memory *struct {
		Median float64 `json:"median"`
	} `json:"memory"`
	Disk []struct {
		Mode   string  `json:"mode"`
		Depth  int     `json:"depth"`
		Median float64 `json:"median"`
	} `json:"disk"`
}

// benchRun is the part of bench --cold --json that measure uses, and what the system counted.
type benchRun struct {
	TopK     int    `json:"experts_per_token"`
	ExpertIO string `json:"expert_io"`
	Slots    int    `json:"slots"`
	Touched  int64  `json:"touched_per_token"`
	Optimum  *struct {
		Misses   int64   `json:"expert_misses"`
		KeptRate float64 `json:"expert_kept_rate"`
		Bytes    int64   `json:"bytes_read"`
	} `json:"optimum"`
	Forecast *struct {
		TokensPerSecond float64 `json:"tokens_per_second"`
	} `json:"forecast"`
	Cases []struct {
		Runs []struct {
			Decode struct {
				Tokens          int     `json:"tokens"`
				Seconds         float64 `json:"seconds"`
				TokensPerSecond float64 `json:"tokens_per_second"`
				HitRate         float64 `json:"expert_hit_rate"`
				KeptRate        float64 `json:"expert_kept_rate"`
				Bytes           int64   `json:"bytes_read"`
				Compute         float64 `json:"compute_seconds"`
				DiskWait        float64 `json:"disk_wait_seconds"`
				Overlap         float64 `json:"overlap_seconds"`
			} `json:"decode"`
		} `json:"runs"`
	} `json:"cases"`

	PeakBytes int64 `json:"peak_bytes"` // of the group, cached file pages included
	// bytes that the process read from disk, including opening the model and measuring the disk
	DiskBytes   int64 `json:"disk_bytes"`
	MajorFaults int64 `json:"major_faults"` // pages that the process waited for
}

// measure makes the models that are missing and measures all rows in turns. If it is interrupted,
// it returns the rows that have a run.
func (m *measurer) measure(ctx context.Context) ([]*row, error) {
	rows, err := m.rows(ctx)
	if err != nil {
		return nil, err
	}
	measured := func(err error) ([]*row, error) {
		var out []*row
		for _, r := range rows {
			if len(r.Runs) > 0 {
				out = append(out, r)
			}
		}
		return out, err
	}
	for n := range m.o.runs {
		for _, r := range rows {
			if n == 0 {
				fmt.Fprintf(m.progress, "%s: doctor\n", r)
				if _, err := m.limited(ctx, r, &r.Doctor, "doctor", r.dir, "--json"); err != nil {
					return measured(err)
				}
			}
			run, err := m.bench(ctx, r)
			if err != nil {
				return measured(err)
			}
			r.Runs = append(r.Runs, run)
			fmt.Fprintf(m.progress, "%s: run %d of %d, %.2f tokens/s\n", r, n+1, m.o.runs, run.speed())
		}
	}
	return measured(nil)
}

func (r *row) String() string { return fmt.Sprintf("%s, %s, %d %%", r.Shape, r.Route, r.Share) }

// bench makes one cold run.
func (m *measurer) bench(ctx context.Context, r *row) (*benchRun, error) {
	args := append([]string{"bench", "--model", r.dir, "--cold", "--prompt-tokens", fmt.Sprint(m.o.prompt), "--gen-tokens", fmt.Sprint(m.o.gen), "--json"}, m.o.bench...)
	run := new(benchRun)
	cost, err := m.limited(ctx, r, run, args...)
	if err != nil {
		return nil, err
	}
	if len(run.Cases) != 1 || len(run.Cases[0].Runs) != 1 {
		return nil, fmt.Errorf("%s: bench printed %d cases, want one with one run", r, len(run.Cases))
	}
	run.PeakBytes, run.DiskBytes, run.MajorFaults = cost.peak, cost.disk, cost.faults
	return run, nil
}

// cost is what the system counted for a process.
type cost struct{ peak, disk, faults int64 }

// limited runs the program cold, under the row's limit, and decodes the JSON that it prints into
// out.
func (m *measurer) limited(ctx context.Context, r *row, out any, args ...string) (c cost, err error) {
	m.made++
	g, err := m.groups.make(fmt.Sprintf("moeflux-measure-%d-%d", os.Getpid(), m.made), r.Limit)
	if err != nil {
		return c, fmt.Errorf("a memory cgroup of %d bytes: %w", r.Limit, err)
	}
	defer func() { err = errors.Join(err, g.Remove()) }()
	syscall.Sync()
	if err := m.groups.dropCaches(); err != nil {
		return c, err
	}
	var held *ballast
	if m.o.hold {
		if held, err = hold(r.Limit); err != nil {
			return c, err
		}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", cgroup.Enter, "sh", g.Dir(), g.Dir(), m.o.program}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := held.beside(ctx, g.Usage, cmd.Run); err != nil {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		return c, fmt.Errorf("%s: %s: %w: %s", r, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		return c, fmt.Errorf("%s: %s printed no JSON: %w", r, strings.Join(args, " "), err)
	}
	c.peak = g.Peak()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.disk, c.faults = int64(u.Inblock)*512, int64(u.Majflt)
	}
	return c, nil
}

// rows lists what to measure, and makes the models.
func (m *measurer) rows(ctx context.Context) ([]*row, error) {
	var rows []*row
	for _, shape := range m.o.shapes {
		first := ""
		for _, route := range m.o.routes {
			dir, err := m.model(ctx, shape, route, first)
			if err != nil {
				return nil, err
			}
			if first == "" {
				first = dir
			}
			size, err := sizeOf(dir)
			if err != nil {
				return nil, err
			}
			for _, share := range m.o.shares {
				rows = append(rows, &row{Shape: shape, Route: route, Share: share, ModelBytes: size, Limit: size * int64(share) / 100, Layers: m.o.layers, dir: dir})
			}
		}
	}
	return rows, nil
}

// model returns the directory of a model, which it makes if it is missing. experts is "" or the
// model of another route, whose expert files it shares.
func (m *measurer) model(ctx context.Context, shape, route, experts string) (string, error) {
	name := shape + "-" + route
	if m.o.layers > 0 {
		name += fmt.Sprintf("-%d-layers", m.o.layers)
	}
	dir := filepath.Join(m.o.models, name)
	_, err := os.Stat(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	args := []string{"synth", "--shape", shape, "--route", route}
	if m.o.layers > 0 {
		args = append(args, "--layers", fmt.Sprint(m.o.layers))
	}
	if experts != "" {
		args = append(args, "--experts-of", experts)
	}
	fmt.Fprintf(m.progress, "making %s\n", dir)
	out, err := exec.CommandContext(ctx, m.o.program, append(args, dir)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return dir, nil
}

// sizeOf returns the bytes of all files below a directory.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
