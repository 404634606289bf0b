package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Tree is a hierarchy in which groups are made.
type Tree struct {
	dir     string // of the hierarchy
	version int
}

// At returns the hierarchy of a version that is mounted at dir.
func At(dir string, version int) *Tree { return &Tree{dir, version} }

// FindMemory finds the hierarchy of memory cgroups below root for the user with this id. The error
// says what is missing and what to do.
func FindMemory(root string, user int) (*Tree, error) {
	return find(root, user, "memory", "memory", "memory.limit_in_bytes")
}

// FindIO does the same for cgroups that throttle disks.
func FindIO(root string, user int) (*Tree, error) {
	return find(root, user, "io", "blkio", "blkio.throttle.read_bps_device")
}

// find looks for version 1 first: a controller that it owns is not available to version 2.
func find(root string, user int, controller, v1Name, v1File string) (*Tree, error) {
	if user != 0 {
		return nil, errors.New("cgroups need root; run it with sudo")
	}
	v1, v2 := filepath.Join(root, "sys/fs/cgroup", v1Name), filepath.Join(root, "sys/fs/cgroup")
	if _, err := os.Stat(filepath.Join(v1, v1File)); err == nil {
		return &Tree{v1, 1}, nil
	}
	have, err := os.ReadFile(filepath.Join(v2, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("there is no %s cgroup with %s, and this needs Linux: mount the version 1 controller at /sys/fs/cgroup/%s or version 2 at /sys/fs/cgroup", v1Name, v1File, v1Name)
	}
	if !hasWord(have, controller) {
		return nil, fmt.Errorf("%s has the controllers %q but not %s: it is switched off or belongs to version 1", v2, strings.TrimSpace(string(have)), controller)
	}
	control := filepath.Join(v2, "cgroup.subtree_control")
	if on, err := os.ReadFile(control); err != nil || !hasWord(on, controller) {
		if err := os.WriteFile(control, []byte("+"+controller), 0); err != nil {
			return nil, fmt.Errorf("the %s controller cannot be handed to groups below %s (inside a container the group of its own processes stands in the way): %w", controller, v2, err)
		}
	}
	return &Tree{v2, 2}, nil
}

func hasWord(list []byte, word string) bool {
	for w := range bytes.FieldsSeq(list) {
		if string(w) == word {
			return true
		}
	}
	return false
}

// Same reports whether groups of both trees are the same.
func (t *Tree) Same(o *Tree) bool { return t.dir == o.dir }

// Make makes an empty group. The caller removes it.
func (t *Tree) Make(name string) (*Group, error) {
	g := &Group{filepath.Join(t.dir, name), t.version}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	return g, nil
}

// Enter is a shell script that moves itself into the groups $1 and $2, which may be the same, and
// then executes the remaining arguments.
const Enter = `for g in "$1" "$2"; do echo $$ > "$g/cgroup.procs" || exit 125; done; shift 2; exec "$@"`

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
