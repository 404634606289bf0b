// Package page is the page that a server shows to people: a chat, and views of what the server
// does. It is plain files in the program, ES modules and styles, without a build step and without
// anything from elsewhere. It is a client of the server like any other.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed *.html *.css *.js *.svg live markdown
var files embed.FS

// Files returns the files of the page.
func Files() fs.FS { return files }

// policy lets the page load and ask its own server alone, run none but its own scripts, and be
// shown in no other page's frame. It also has the browser refuse to parse text as HTML: what models
// write is never markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are the types of the page's files, by their extensions.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is a file of the page, as it is served.
type file struct {
	body []byte
	kind string
	tag  string // changes with the body
}

// load returns the files by their paths.
func load() map[string]file {
	all := make(map[string]file)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		sum := sha256.Sum256(body)
		all["/page/"+name] = file{body: body, kind: types[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	if err != nil { // a bug: the files are part of the program
		panic(err)
	}
	all["/"] = all["/page/index.html"]
	return all
}

// Handler answers GET / and GET /page/…. The files are the same for everybody, tell nothing of the
// model, and need no key: the page asks for it. unknown answers for what is not there.
func Handler(unknown http.HandlerFunc) http.HandlerFunc {
	all := load()
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := all[r.URL.Path]
		if !ok {
			unknown(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // ask whether it is still so
		h.Set("Etag", f.tag)
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(f.body) // a client that has left is noticed by its context
	}
}
