package pull

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/hub"
)

// ErrBusy reports that another process is pulling to the same directory.
var ErrBusy = errors.New("another pull to this directory is running")

// The names beside the target, and in there.
const (
	workSuffix = ".download"
	stateName  = "pull.json"
	filesName  = "files"
)

// state is the content of stateName.
type state struct {
	Repo     string `json:"repo"`
	Revision string `json:"revision"` // as it was asked for
	File     string `json:"file,omitempty"`
	Commit   string `json:"commit"` // what the revision was when the pull began
}

// work is the folder of a pull that is under way. It is locked against other processes.
type work struct {
	dir   string
	lock  *os.File
	files *os.Root // of the files that are fetched
	state state
}

// openWork makes the folder of a pull to target, or opens the one that an earlier call left.
func openWork(target string, o Options) (*work, error) {
	w := &work{dir: target + workSuffix}
	if err := durable.MkdirAll(w.dir, durable.Shared); err != nil {
		return nil, err
	}
	var err error
	if w.lock, err = os.Open(w.dir); err != nil {
		return nil, err
	}
	if err := w.open(o); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *work) open(o Options) error {
	err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrBusy
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	if err := w.readState(o); err != nil {
		return err
	}
	if err := os.Mkdir(w.path(), durable.Shared.Dir()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	w.files, err = os.OpenRoot(w.path())
	return err
}

// readState reads which pull the folder is of, which must be this one.
func (w *work) readState(o Options) error {
	raw, err := os.ReadFile(filepath.Join(w.dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(w.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() != filesName && !strings.HasSuffix(e.Name(), ".tmp") {
				return &StateError{Dir: w.dir, Why: "is in the way, and not from an earlier pull: move it away"}
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &w.state); err != nil {
		return &StateError{Dir: w.dir, Why: fmt.Sprintf("holds a %s that cannot be read (%v): remove the folder to begin anew", stateName, err)}
	}
	if s := w.state; s.Repo != o.Repo || s.Revision != o.Revision || s.File != o.File {
		what := s.Repo + " at " + s.Revision
		if s.File != "" {
			what = s.File + " of " + what
		}
		return &StateError{Dir: w.dir, Why: fmt.Sprintf("holds an unfinished pull of %s: finish that, or remove the folder", what)}
	}
	return nil
}

// begin notes which pull the folder is of.
func (w *work) begin(o Options, commit string) error {
	w.state = state{Repo: o.Repo, Revision: o.Revision, File: o.File, Commit: commit}
	raw, err := json.MarshalIndent(w.state, "", " ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(w.dir, stateName), durable.Shared, append(raw, '\n'))
}

// path is the folder of the files that are fetched.
func (w *work) path() string { return filepath.Join(w.dir, filesName) }

// close gives up the folder and leaves what is in it.
func (w *work) close() {
	if w.files != nil {
		w.files.Close()
	}
	w.lock.Close()
}

// remove removes the folder.
func (w *work) remove() error { return os.RemoveAll(w.dir) }

// tidy removes the folder of a pull that failed before any weights came: there is nothing to go on
// with.
func (w *work) tidy(target string) error {
	entries, err := os.ReadDir(w.path())
	if err != nil || exists(target+".partial") {
		return err
	}
	for _, e := range entries {
		switch name := strings.TrimSuffix(e.Name(), hub.PartSuffix); filepath.Ext(name) {
		case ".safetensors", ".gguf":
			return nil
		}
	}
	return w.remove()
}
