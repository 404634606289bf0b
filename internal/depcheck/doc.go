// Package depcheck checks the module's architecture as a test: which package may import which,
// where each third-party module may be imported, and which folders there are. The rules are the
// text of rules.txt; docs/architecture.md argues for them.
//
// It also checks that the modules within this one require what this one has come to need, which the
// go command notices only where their tests run.
//
// Every .go file counts, whatever its build tags, because a rule must hold on all systems. Test
// files are exempt, as are testdata, hidden folders, nested modules, and files tagged "ignore".
package depcheck
