package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: elsewhere GOOS GOARCH")
		os.Exit(2)
	}
	r, err := check(config{dir: ".", goos: os.Args[1], goarch: os.Args[2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, "elsewhere:", err)
		os.Exit(1)
	}
	for _, p := range r.leftOut {
		fmt.Println("left out, needs cgo:", p)
	}
	for _, f := range r.findings {
		fmt.Println(f)
	}
	fmt.Printf("%d packages, those of tests included; %d findings\n", r.checked, len(r.findings))
	if len(r.findings) > 0 {
		os.Exit(1)
	}
}
