package server

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

// pageFiles is the page: a chat, and views of what the server does. It is plain files without a
// build step, and asks for nothing from elsewhere.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load and ask its own server alone, run none but its own scripts, and be
// shown in no other page's frame. It also has the browser refuse to parse text as HTML: what models
// write is never markup.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pageTypes are the types of the page's files, by their extensions.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// pageFile is a file of the page, as it is served.
type pageFile struct {
	body []byte
	kind string
	tag  string // changes with the body
}

// page answers GET / and GET /page/…. The files are the same for everybody, tell nothing of the
// model, and need no key: the page asks for it. unknown answers for what is not there.
func page(unknown http.HandlerFunc) http.HandlerFunc {
	files := make(map[string]pageFile)
	err := fs.WalkDir(pageFiles, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := pageFiles.ReadFile(name)
		sum := sha256.Sum256(body)
		files["/"+name] = pageFile{body: body, kind: pageTypes[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	if err != nil { // a bug: the files are part of the program
		panic(err)
	}
	files["/"] = files["/page/index.html"]
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok {
			unknown(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Content-Security-Policy", pagePolicy)
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
