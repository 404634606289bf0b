package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Checkout is the files of a repository at one commit.
type Checkout struct {
	client *Client
	Repo   string // ORG/NAME
	Commit string // its hash
	Files  []File
}

// File is a file of a repository.
type File struct {
	Name   string // with slashes
	Size   int64  // bytes
	SHA256 string // in hex; "" of a file that the hub keeps as a Git object
	Blob   string // the name of the Git object: the SHA-1 of its size and content, in hex
}

// Sum returns the checksum by which the file is checked.
func (f File) Sum() string {
	if f.SHA256 != "" {
		return f.SHA256
	}
	return f.Blob
}

// hash returns the hash whose sum is Sum.
func (f File) hash() hash.Hash {
	if f.SHA256 != "" {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return h
}

var (
	repoName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
	sha256Hex  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	sha1Hex    = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// RepoName reports whether a text has the form ORG/NAME.
func RepoName(s string) bool { return repoName.MatchString(s) && !strings.Contains(s, "..") }

// Commit returns the hash of the commit that a branch, a tag or a hash stands for now.
func (c *Client) Commit(ctx context.Context, repo, revision string) (string, error) {
	if commitHash.MatchString(revision) {
		return revision, nil
	}
	var info struct {
		SHA string `json:"sha"`
	}
	u := c.url("api/models/"+repo+"/revision/", revision)
	if _, err := c.json(ctx, Asked{Repo: repo, Revision: revision}, u, &info); err != nil {
		return "", err
	}
	if !commitHash.MatchString(info.SHA) {
		return "", fmt.Errorf("%s answers that %s is at %q, which is not the hash of a commit", c.config.Endpoint, repo, info.SHA)
	}
	return info.SHA, nil
}

// maxPages bounds how long a list may be.
const maxPages = 1000

// Checkout lists the files of a repository at a commit.
func (c *Client) Checkout(ctx context.Context, repo, commit string) (*Checkout, error) {
	out := &Checkout{client: c, Repo: repo, Commit: commit}
	u := c.url("api/models/"+repo+"/tree/", commit)
	u.RawQuery = "recursive=true"
	for range maxPages {
		var page []entry
		header, err := c.json(ctx, Asked{Repo: repo, Revision: commit}, u, &page)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Type != "file" {
				continue
			}
			f, err := e.file()
			if err != nil {
				return nil, fmt.Errorf("%s lists in %s %w", c.config.Endpoint, repo, err)
			}
			out.Files = append(out.Files, f)
		}
		if u.RawQuery = nextPage(header); u.RawQuery == "" {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s lists the files of %s on more than %d pages", c.config.Endpoint, repo, maxPages)
}

// entry is a file or folder in a list.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// file checks what the hub says of a file.
func (e entry) file() (File, error) {
	f := File{Name: e.Path, Size: e.Size, Blob: e.OID}
	if e.LFS != nil {
		f.Size, f.SHA256 = e.LFS.Size, strings.TrimPrefix(e.LFS.OID, "sha256:")
	}
	switch {
	case !filepath.IsLocal(filepath.FromSlash(f.Name)) || strings.ContainsFunc(f.Name, unicode.IsControl):
		return f, fmt.Errorf("%q, which is not the name of a file in a repository", f.Name)
	case f.Size < 0:
		return f, fmt.Errorf("%q with %d bytes", f.Name, f.Size)
	case e.LFS != nil && !sha256Hex.MatchString(f.SHA256), e.LFS == nil && !sha1Hex.MatchString(f.Blob):
		return f, fmt.Errorf("%q without a checksum", f.Name)
	}
	return f, nil
}

// nextPage returns the query of the list's next page, or "". Mirrors pass on addresses of the hub
// that they mirror, so the query is all that is taken of it.
func nextPage(h http.Header) string {
	for _, link := range h.Values("Link") {
		for _, l := range strings.Split(link, ",") {
			address, rel, ok := strings.Cut(strings.TrimSpace(l), ">")
			if !ok || !strings.Contains(rel, `rel="next"`) {
				continue
			}
			if u, err := url.Parse(strings.TrimPrefix(address, "<")); err == nil {
				return u.RawQuery
			}
		}
	}
	return ""
}

// Find returns the file of a name.
func (c *Checkout) Find(name string) (File, bool) {
	for _, f := range c.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}
