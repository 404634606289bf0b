package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The umask alone decides who may read what users name, the demo model and a synthetic one; what
// the program keeps of texts on its own is private.
func TestUmask(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for umask, want := range map[string]struct{ file, dir fs.FileMode }{"022": {0o644, 0o755}, "077": {0o600, 0o700}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ids.json"), []byte(`{"p": [1, 2, 3]}`), 0o666&want.file); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{
			"run -p x -n 1 --cache-dir cache/new --session s --session-dir kept/sessions",
			"logits --ids ids.json --out logits --cache-dir cache/new",
			"state save state -p x --cache-dir cache/new",
			"synth models/synth --shape qwen3-30b-a3b --layers 1 --seed 1 --experts 8 --vocab 1024",
			"synth --shape qwen3-30b-a3b --layers 1 --simulate 3 --routing routing",
		} {
			cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `umask "$0" && exec "$@"`, umask, self}, strings.Fields(command)...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), asProgram+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
		}
		seen := map[string]int{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(dir, path)
			place, _, _ := strings.Cut(name, string(filepath.Separator))
			seen[place]++
			mode := want.file
			if d.IsDir() {
				mode = want.dir
			}
			if place == "kept" {
				mode &= 0o700
			}
			if info.Mode().Perm() != mode {
				t.Errorf("umask %s: %s is %v, want %v", umask, name, info.Mode().Perm(), mode)
			}
			return nil
		})
		if err != nil || len(seen) != 7 || seen["kept"] < 3 || seen["cache"] < 10 || seen["models"] < 7 {
			t.Errorf("%v: %v files and folders, want some of each command", err, seen)
		}
	}
}
