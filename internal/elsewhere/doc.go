// Command elsewhere checks this module's packages and their tests as on another system, from
// source: the types of all of them, and what go vet finds with syntax and types alone.
//
//	go run ./internal/elsewhere darwin arm64
//
// go vet with GOOS and GOARCH compiles every dependency first, which takes a minute for nothing:
// its object code is thrown away. Here dependencies lend their declarations only.
package main
