package darwincheck

import "testing"

func TestX(t *testing.T) {
	r, err := Check(Config{Dir: "../..", Analyzers: Vet()}, "./gpu/metal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Errors {
		t.Error(e)
	}
	for _, e := range r.Findings {
		t.Error(e)
	}
	t.Logf("%d packages %d panics %d dep errors", r.Packages, len(r.Panicking), r.Dependencies)
}
