# make check runs what CI runs after the tests; make ci runs all of it.

.PHONY: all build test check ci fmt clean

all: build

build:
	go build -o bin/moeflux-actor ./cmd/moeflux-actor

test:
	go test ./...

check:
	.ci/run check

ci:
	.ci/run

fmt:
	gofmt -w .

clean:
	rm -rf bin
