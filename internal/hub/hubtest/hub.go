// Package hubtest is a hub for tests: Hugging Face's API, as far as fetching needs it, over files
// of a folder, with the faults that networks have.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// Commit is the hash that main stands for.
const Commit = "5f0a6b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f70"

// Hub serves one repository.
type Hub struct {
	// URL is the address of the hub, for HF_ENDPOINT.
	URL string
	// Stop ends the hub: its address answers nothing any more.
	Stop func()
	// Elsewhere is the address that large files are redirected to. "" if they are not.
	Elsewhere string
	// PageSize is how many entries a list has on a page; 0 means all.
	PageSize int
	// Token is what a client must bring; "" means nothing.
	Token string
	// Before, if not nil, may answer a request in the hub's place, and returns whether it did. It
	// may also change the writer. It is called for one request at a time.
	Before func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)

	repo, dir string

	turn     sync.Mutex // of calls of Before
	mu       sync.Mutex
	requests []*http.Request
}

// New starts a hub with one repository, whose files are those of a folder. Files named
// *.safetensors or *.gguf are large ones.
func New(t testing.TB, repo, dir string) *Hub {
	t.Helper()
	h := &Hub{repo: repo, dir: dir}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	h.URL, h.Stop = s.URL, s.Close
	return h
}

// Redirect starts a second host, which large files are redirected to, as a hub does.
func (h *Hub) Redirect(t testing.TB) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(h.elsewhere))
	t.Cleanup(s.Close)
	h.Elsewhere = s.URL
}

// Requests returns what was asked so far.
func (h *Hub) Requests() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Asked returns how often a file was asked for.
func (h *Hub) Asked(file string) (n int) {
	for _, r := range h.Requests() {
		if strings.HasSuffix(r.URL.Path, "/"+file) {
			n++
		}
	}
	return n
}

// note keeps a request, and lets Before answer it.
func (h *Hub) note(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
	h.mu.Lock()
	h.requests = append(h.requests, r)
	h.mu.Unlock()
	if h.Before == nil {
		return w, false
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	return h.Before(w, r)
}

// ServeHTTP answers as the hub.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, done := h.note(w, r)
	if done {
		return
	}
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		Refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to this model is restricted")
		return
	}
	api := "/api/models/" + h.repo
	switch path := r.URL.Path; {
	case path == api+"/revision/main":
		answer(w, map[string]any{"id": h.repo, "sha": Commit, "private": false})
	case path == api+"/tree/"+Commit:
		h.list(w, r)
	case strings.HasPrefix(path, "/"+h.repo+"/resolve/"+Commit+"/"):
		h.resolve(w, r, strings.TrimPrefix(path, "/"+h.repo+"/resolve/"+Commit+"/"))
	case strings.HasPrefix(path, api+"/revision/") || strings.HasPrefix(path, api+"/tree/"):
		Refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id")
	default: // as Hugging Face says it to those without a token
		Refuse(w, http.StatusUnauthorized, "RepoNotFound", "Invalid username or password.")
	}
}

// Refuse answers with an error, as the hub writes it.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	if !strings.ContainsFunc(message, unicode.IsControl) {
		w.Header().Set("X-Error-Message", message)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func large(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf")
}

// list answers with a page of files and folders.
func (h *Hub) list(w http.ResponseWriter, r *http.Request) {
	var all []map[string]any
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == h.dir {
			return err
		}
		name, err := filepath.Rel(h.dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			all = append(all, map[string]any{"type": "directory", "oid": strings.Repeat("0", 40), "size": 0, "path": name})
			return nil
		}
		raw, err := os.ReadFile(path)
		all = append(all, describe(name, raw))
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	first := 0
	fmt.Sscan(r.URL.Query().Get("cursor"), &first)
	page := all[min(first, len(all)):]
	if h.PageSize > 0 && len(page) > h.PageSize {
		page = page[:h.PageSize]
		// Mirrors pass on the address of the hub that they mirror.
		w.Header().Set("Link", fmt.Sprintf(`<https://hub.invalid%s?recursive=true&cursor=%d>; rel="next"`, r.URL.Path, first+h.PageSize))
	}
	answer(w, page)
}

// describe returns an entry of the list.
func describe(name string, raw []byte) map[string]any {
	blob := sha1.Sum(append([]byte(fmt.Sprintf("blob %d\x00", len(raw))), raw...))
	e := map[string]any{"type": "file", "path": name, "size": len(raw), "oid": hex.EncodeToString(blob[:])}
	if large(name) { // whose Git object is a pointer
		sum := sha256.Sum256(raw)
		e["oid"] = strings.Repeat("1", 40)
		e["lfs"] = map[string]any{"oid": hex.EncodeToString(sum[:]), "size": len(raw), "pointerSize": 134}
		e["xetHash"] = strings.Repeat("2", 64)
	}
	return e
}

// resolve answers with a file, or where it is.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, name string) {
	if _, err := os.Stat(filepath.Join(h.dir, filepath.FromSlash(name))); err != nil {
		Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	if large(name) && h.Elsewhere != "" {
		http.Redirect(w, r, h.Elsewhere+"/lfs/"+name+"?Signature=x", http.StatusFound)
		return
	}
	http.ServeFile(w, r, filepath.Join(h.dir, filepath.FromSlash(name)))
}

// elsewhere answers as the host that has the large files.
func (h *Hub) elsewhere(w http.ResponseWriter, r *http.Request) {
	w, done := h.note(w, r)
	if done {
		return
	}
	http.ServeFile(w, r, filepath.Join(h.dir, filepath.FromSlash(strings.TrimPrefix(r.URL.Path, "/lfs/"))))
}

// Cut lets n bytes of an answer's body through and then breaks the connection.
type Cut struct {
	http.ResponseWriter
	N int
}

// Write passes bytes on, as far as they may pass.
func (c *Cut) Write(p []byte) (int, error) {
	if len(p) <= c.N {
		c.N -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.N])
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// Flip damages the byte at N of an answer's body.
type Flip struct {
	http.ResponseWriter
	N int
}

// Write passes bytes on, one of them damaged.
func (f *Flip) Write(p []byte) (int, error) {
	if f.N >= 0 && f.N < len(p) {
		p = slices.Clone(p)
		p[f.N] ^= 0x40
	}
	f.N -= len(p)
	return f.ResponseWriter.Write(p)
}
