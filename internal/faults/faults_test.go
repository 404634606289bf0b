package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

func TestMountOf(t *testing.T) {
	const mounts = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 22 8:17 / /mnt/big\040disk rw,noatime shared:2 master:3 - xfs /dev/sdb1 rw
32 22 0:40 / /mnt/over rw - overlay overlay rw
33 22 8:33 / /mnt/over rw - ext4 /dev/sdc1 rw
short line
`
	for dir, want := range map[string]string{
		"/models": "254:0 /dev/vda", "/mnt/big disk/x/packed_experts": "8:17 /dev/sdb1", "/mnt/big disk": "8:17 /dev/sdb1", "/mnt/big diskette": "254:0 /dev/vda",
		"/sys/fs/cgroup/x": "0:25 tmpfs", "/mnt/over/y": "8:33 /dev/sdc1", "/": "254:0 /dev/vda",
	} {
		number, source := mountOf([]byte(mounts), dir)
		if got := number + " " + source; got != want {
			t.Errorf("%s lies on %s, want %s", dir, got, want)
		}
	}
}

// TestDiskOf finds the disk of a partition, and says so where there is no disk.
func TestDiskOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(number string) {
		write("proc/self/mountinfo", fmt.Sprintf("31 22 %s / %s rw - ext4 /dev/x rw\n", number, dir))
	}
	write("sys/devices/sda/dev", "8:0\n")
	write("sys/devices/sda/sda1/partition", "1\n")
	write("sys/dev/block/x", "")
	for number, target := range map[string]string{"8:0": "../../devices/sda", "8:1": "../../devices/sda/sda1"} {
		if err := os.Symlink(target, filepath.Join(root, "sys/dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	for _, number := range []string{"8:0", "8:1"} {
		mount(number)
		if disk, err := diskOf(root, dir); err != nil || disk != "8:0" {
			t.Errorf("%s is on disk %s, %v; want 8:0", number, disk, err)
		}
	}
	mount("0:40")
	if _, err := diskOf(root, dir); err == nil || !strings.Contains(err.Error(), "not a disk that can be throttled") {
		t.Errorf("an overlay: %v", err)
	}
	if _, err := diskOf(root, filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a disk")
	}
}

func TestParse(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	model := t.TempDir()
	if err := os.WriteFile(filepath.Join(model, "synth.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	good := []string{"-program", me, "-model", model}
	o, err := parse(good, io.Discard)
	if err != nil || !slices.Equal(o.only, []string{"memory", "stall", "dead", "cancel", "two"}) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parse(slices.Concat(good, []string{"-only", "dead,memory"}), io.Discard); err != nil || len(o.only) != 2 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, more := range [][]string{
		{"-model", ""}, {"-model", t.TempDir()}, {"-program", "/none"}, {"-only", "flood"}, {"-tokens", "1"}, {"-stall", "1s"}, {"-share", "95"}, {"more"}, {"-what"},
	} {
		if o, err := parse(slices.Concat(good, more), io.Discard); err == nil {
			t.Errorf("%q: got %+v and no error", more, o)
		}
	}
}

// program is a stand-in for moeflux-actor in a stand-in for a kernel, which empties folders by
// itself. What it does is in $1's file.
const program = `#!/bin/sh
trap 'echo interrupted >&2; sleep 0.5; rm -f %[1]s/*/moeflux-*/*; exit 130' INT
%[2]s
rm -f %[1]s/*/moeflux-*/*
exit ${code:-0}
`

// breakerWith makes a breaker whose program does as the script says, and whose groups are folders.
func breakerWith(t *testing.T, script string) (*breaker, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"memory", "io", "model/packed_experts"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "program")
	if err := os.WriteFile(bin, fmt.Appendf(nil, program, dir, script), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	return &breaker{
		o:   &options{program: bin, model: filepath.Join(dir, "model"), tokens: 100, stall: 2 * time.Second, share: 60},
		out: &out, memory: cgroup.At(filepath.Join(dir, "memory"), 1), io: cgroup.At(filepath.Join(dir, "io"), 1), disk: "8:0",
	}, &out
}

// TestTwo runs the one fault that needs no kernel, and holds that a wrong token, a crash and a run
// without tokens are told.
func TestTwo(t *testing.T) {
	for script, want := range map[string]string{
		`echo '{"tokens":25,"differences":0}'`: "50 tokens as they must be",
		`echo '{"tokens":25,"differences":1}'`: "1 of 25 tokens wrong",
		`echo '{"tokens":0}'`:                  "0 of 0 tokens wrong",
		`echo no such luck >&2; code=3`:        "no such luck",
		`echo what`:                            "prints no JSON",
	} {
		b, out := breakerWith(t, script)
		b.o.only = []string{"two"}
		err := b.all(context.Background())
		if survived := strings.Contains(out.String(), "1 fault tried, 1 survived"); !strings.Contains(out.String(), want) || survived != (err == nil) {
			t.Errorf("%s:\n%s%v", script, out, err)
		}
	}
}

// TestCancel interrupts the stand-in, which says so or does not.
func TestCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b, out := breakerWith(t, `while :; do sleep 0.1; done`)
	b.o.only = []string{"cancel"}
	if err := b.all(context.Background()); err != nil || !strings.Contains(out.String(), "after the interrupt, while the disk was silent; exit 130") {
		t.Errorf("%s%v", out, err)
	}
}

func TestSlots(t *testing.T) {
	const text = "x level=WARN msg=\"expert slots are given up, memory is short\" from=256 to=100 most=256\nother from=1 to=2\n" +
		"x level=WARN msg=\"expert slots are given up, memory is short\" from=100 to=73\n"
	if got := slots(text); got != "256 slots became 73" {
		t.Error(got)
	}
}
