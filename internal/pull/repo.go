package pull

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/hub"
)

// RepoError reports a repository that does not hold what is asked for.
type RepoError struct {
	Repo string
	Why  string // with what to do
}

func (e *RepoError) Error() string { return e.Repo + " " + e.Why }

// checkModel refuses repositories without a checkpoint in safetensors.
func (p *puller) checkModel() error {
	has := func(name string) bool { _, ok := p.checkout.Find(name); return ok }
	gguf := p.ggufFiles()
	switch weights := has(indexName) || has("model.safetensors"); {
	case weights && has("config.json"):
		return nil
	case len(gguf) > 0:
		return &RepoError{Repo: p.options.Repo, Why: "holds no checkpoint in safetensors, but GGUF files: name one with --file, of " + some(gguf)}
	case weights:
		return &RepoError{Repo: p.options.Repo, Why: "holds no config.json beside its weights"}
	}
	return &RepoError{Repo: p.options.Repo, Why: "holds no checkpoint in safetensors: neither " + indexName + " nor model.safetensors"}
}

// ggufFiles returns the GGUF files that can be asked for: of those in parts the first.
func (p *puller) ggufFiles() []string {
	var out []string
	for _, f := range p.checkout.Files {
		if !strings.HasSuffix(f.Name, ".gguf") {
			continue
		}
		if m := partName.FindStringSubmatch(f.Name); m == nil || m[2] == "00001" {
			out = append(out, f.Name)
		}
	}
	slices.Sort(out)
	return out
}

// some joins names, and counts those beyond a few.
func some(names []string) string {
	const most = 12
	if rest := len(names) - most; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), rest)
	}
	return strings.Join(names, ", ")
}

// partName is the name of a GGUF file in parts: NAME-00001-of-00003.gguf.
var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// parts returns the files that Options.File stands for: one, or all parts of one.
func (p *puller) parts() ([]hub.File, error) {
	f, err := p.findGGUF()
	if err != nil {
		return nil, err
	}
	m := partName.FindStringSubmatch(f.Name)
	if m == nil {
		return []hub.File{f}, nil
	}
	var n int
	if _, err := fmt.Sscanf(m[3], "%d", &n); err != nil || n < 1 {
		return nil, &RepoError{Repo: p.options.Repo, Why: fmt.Sprintf("has a file %s, of no parts", f.Name)}
	}
	var out []hub.File
	for i := range n {
		name := fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3])
		part, ok := p.checkout.Find(name)
		if !ok {
			return nil, &RepoError{Repo: p.options.Repo, Why: fmt.Sprintf("has no %s, a part of %s", name, f.Name)}
		}
		out = append(out, part)
	}
	return out, nil
}

// findGGUF returns the file that is asked for, by its path or by its name alone.
func (p *puller) findGGUF() (hub.File, error) {
	if f, ok := p.checkout.Find(p.options.File); ok {
		return f, nil
	}
	var found []hub.File
	for _, f := range p.checkout.Files {
		if path.Base(f.Name) == p.options.File {
			found = append(found, f)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	why := fmt.Sprintf("has no file %s", p.options.File)
	if len(found) > 1 {
		why = fmt.Sprintf("has several files %s: name one with its folder", p.options.File)
	}
	if all := p.ggufFiles(); len(all) > 0 {
		why += "; its GGUF files: " + some(all)
	}
	return hub.File{}, &RepoError{Repo: p.options.Repo, Why: why}
}
