#!/usr/bin/env bash
# Runs what bundle.sh made on a machine with an NVIDIA GPU.
#
#   BUNDLE/run.sh OUT [PART...]
#
# The parts, by default the first three:
#
#   tests      the conformance suite with odd and with aligned operands, the probes, and the tests
#              of package actors, which need the working directory to be a checkout of this module
#   memcheck   the conformance suite under compute-sanitizer
#   racecheck  the same, for races in shared memory
#   figures    the benchmarks of the device and of operations
#   program    a synthetic model of full size: 20 GB below /tmp
#
# OUT gets a log for each part, and summary.txt with a line for each. The exit code says whether
# the tests and the sanitizers passed. A part's tests are dealt out to as many processes as there
# are processors: most of the first run goes to compiling kernels, which a process does one at a
# time. MOEFLUX_CUDA_CACHE names the folder that keeps what was compiled; without it nothing is
# kept. SECONDS_EACH (default 480) ends each part.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: run.sh OUT [PART...]}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MOEFLUX_CUDA_CACHE=${MOEFLUX_CUDA_CACHE:-$work/cache/cuda}
for f in "$here"/*.gz; do gzip -dc "$f" >"$work/$(basename "$f" .gz)"; done
chmod +x "$work"/*
limit=${SECONDS_EACH:-480}
failed=0

say() { echo "$*" | tee -a "$out/summary.txt"; }

# Shards are patterns of tests, of which each is one process; one more runs what is left.
conformance=()
for t in TestConformance TestConformanceAligned; do
	for c in '^matmul$/^edges$' '^matmul$/^format=q8' '^matmul$/^format=q4g64$' '^matmul$/^format=q4g(32|128|64p)' '^matmul$/^format=q2' \
		'^matmul$/^format=(f32|bf16)$' '^alone$/^matmul$' '^alone$/^experts$' '^sequence$' '^experts$' '^(headmatmul|latentattention|valuedim|appendkv)$' '^attention$'; do
		conformance+=("^$t\$/$c")
	done
done
engine=('^TestCUDAFixtures$/^deepseek_v3$' '^TestCUDAFixtures$/^qwen3_5_moe$' '^TestCUDAFixtures$/^qwen3_moe$' '^TestCUDAFixtures$/^qwen3_next$'
	'^TestCUDADemo$' '^TestCUDAEqualBits$/^qwen3_5_moe$' '^TestCUDAEqualBits$/^deepseek_v3$')

# deal writes a file for each shard: program all pattern...
deal() {
	local program=$1 all=$2 name
	shift 2
	local IFS='|'
	for p in "$@"; do
		printf '%s\n' "-test.run=$p" >"$(mktemp "$work/shards/$program.XXXXXX")"
	done
	printf '%s\n' "-test.run=$all" "-test.skip=$*" >"$(mktemp "$work/shards/$program.XXXXXX")"
}

# one runs a shard: its file, then a command to run it under.
one() {
	local shard=$1 program code=0 began=$SECONDS
	shift
	program=$(basename "$shard")
	program=${program%.*}
	local args
	mapfile -t args <"$shard"
	timeout -k 5 "$limit" "$@" "$work/$program" -test.v -test.timeout 0 "${args[@]}" >"$shard.log" 2>&1 || code=$?
	echo "== $program ${args[*]}: exit $code, $((SECONDS - began)) s" >>"$shard.log"
	return $code
}
export -f one
export work limit

# shards runs those that were dealt: part command...
shards() {
	local part=$1 code=0 began=$SECONDS
	shift
	find "$work/shards" -type f | sort | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' one {} "$@" || code=1
	cat "$work"/shards/*.log >"$out/$part.log"
	rm -r "$work/shards"
	failed=$((failed | code))
	say "$part: exit $code, $((SECONDS - began)) s, passed $(grep -c -- '--- PASS' "$out/$part.log"), failed $(grep -c -- '--- FAIL' "$out/$part.log")," \
		"shards that failed: $(grep -c '^== .*: exit [1-9]' "$out/$part.log")"
	grep -E -- '--- FAIL|^panic|^== .*: exit [1-9]' "$out/$part.log" | head -20
}

part_tests() {
	mkdir "$work/shards"
	deal cuda.test '^TestConformance|^TestProbe' "${conformance[@]}"
	deal actors.test '^TestCUDA' "${engine[@]}"
	shards tests
}

sanitizer() { # tool
	local program
	program=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
	if [ -z "$program" ]; then
		say "$1: there is no compute-sanitizer here"
		failed=1
		return
	fi
	mkdir "$work/shards"
	deal cuda.test '^TestConformance' "${conformance[@]}"
	shards "$1" "$program" --tool "$1" --print-limit 20 --error-exitcode 9
	say "$1: $(grep -h SUMMARY "$out/$1.log" | sed 's/^=* *//' | sort | uniq -c | tr -s ' \n' ' ')"
}

part_memcheck() { sanitizer memcheck; }
part_racecheck() { sanitizer racecheck; }

logged() { # part command...
	local part=$1 code=0 began=$SECONDS
	shift
	echo "\$ $*" >>"$out/$part.log"
	timeout -k 5 "$limit" "$@" >>"$out/$part.log" 2>&1 || code=$?
	say "$part: exit $code, $((SECONDS - began)) s: ${*:2:4}"
}

part_figures() { logged figures "$work/cuda.test" -test.run '^$' -test.bench . -test.benchtime 0.1s; }

part_program() {
	local program="$work/moeflux-actor"
	logged program "$program" synth --shape qwen3-30b-a3b "$work/synth"
	local bench=("$program" bench --device cuda --cache-dir "$work/cache" --model "$work/synth" --gen-tokens 64 --repeat 2)
	logged program "${bench[@]}" --sequences 1,8,32 --prompt-tokens 512
	logged program "${bench[@]}" --expert-memory 4GiB --prompt-tokens 64
	logged program "$program" synth --check "$work/synth" --device cuda --cache-dir "$work/cache"
}

nvidia-smi >"$out/machine.log" 2>&1
[ $# -gt 0 ] || set -- tests memcheck racecheck
for p; do "part_$p"; done
exit $failed
