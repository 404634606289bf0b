#!/usr/bin/env bash
# Builds what the tests and benchmarks of a GPU need, for a machine that has neither Go nor a
# network:
#
#   gpu/cuda/testdata/bundle.sh DIR
#
# DIR then holds the programs and run.sh, which says how to use them.
set -euo pipefail
dir=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/../../.."
go build -ldflags='-s -w' -o "$dir/moeflux-actor" ./cmd/moeflux-actor
go test -c -tags cuda -ldflags='-s -w' -o "$dir/cuda.test" ./gpu/cuda
go test -c -tags cuda -ldflags='-s -w' -o "$dir/actors.test" ./actors
cp gpu/cuda/testdata/run.sh "$dir/"
gzip -f "$dir/moeflux-actor" "$dir/cuda.test" "$dir/actors.test"
