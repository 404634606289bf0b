#!/usr/bin/env bash
# Runs what bundle.sh made on a machine with an NVIDIA GPU.
#
#   BUNDLE/run.sh OUT [PART...]
#
# The parts, by default the first four:
#
#   conformance  the suite with odd and with aligned operands, and the probes
#   engine       the tests of package actors, which need the working directory to be a checkout of
#                this module
#   memcheck     the suite under compute-sanitizer
#   racecheck    the same, for races in shared memory
#   figures      the benchmarks of the device and of operations
#   program      synthetic models of full size: 40 GB below /tmp
#   account      each kernel of a token, by Nsight Compute: time, and bytes of the card's memory
#
# OUT gets a log for each part, and summary.txt with a line for each. The exit code says whether
# the tests and the sanitizers passed. A part's tests are dealt out to as many processes as there
# are processors: most of the first run goes to compiling kernels, which a process does one at a
# time. MOEFLUX_CUDA_CACHE names the folder that keeps what was compiled; without it nothing is
# kept. SECONDS_EACH (default 480) ends each part. SKIP leaves cases of the suite out, as -test.skip
# does: SKIP='^TestConformance(Aligned)?$/^[k-z]'.
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
count=0
failed=0

say() { echo "$*" | tee -a "$out/summary.txt"; }

# Shards are patterns of tests. Each is one process that runs what those before it have left, so the
# last, which is empty, runs the rest. They begin in this order: those with most kernels first.
conformance=()
for format in q4g64 q8g32 q2g32 q4g32 q4g128 q8g64 q8g128 q2g64 q2g128; do
	conformance+=("^alone\$/^experts\$/^format=$format" "^alone\$/^matmul\$/^format=$format" "^matmul\$/^format=$format")
done
conformance+=('^experts$/^dim' '^experts$/^biased' '^experts$/^format=q4' '^experts$/^format=(q2|q8)' '^matmul$/^edges$' '^multiplied$' '^joined$/^products$'
	'^joined$' '^(chosen|blocks)$' '^alone$/^(matmul|experts)$' '^experts$' '^sequence$' '^attention$' '^(headmatmul|latentattention|valuedim|appendkv)$'
	'^matmul$' '^alone$' '^embed$' '^choose$' '')
engine=('^TestCUDAFixtures$/^deepseek_v3$' '^TestCUDAFixtures$/^qwen3_5_moe$' '^TestCUDAFixtures$/^qwen3_moe$' '^TestCUDAFixtures$/^qwen3_next$'
	'^TestCUDADemo$' '^TestCUDAEqualBits$/^qwen3_5_moe$' '^TestCUDAEqualBits$/^deepseek_v3$'
	'^TestCUDANear$' '^TestCUDA')

# deal writes a file for each shard: program skip pattern...
deal() {
	local program=$1 skip=$2 p
	shift 2
	for p; do
		count=$((count + 1))
		printf '%s\n' "-test.run=$p" ${skip:+"-test.skip=$skip"} >"$work/shards/$(printf %04d $count).$program"
		skip+="${skip:+|}$p"
	done
}

# suite deals out the conformance suite, and products of a GPU that rounds or is small.
suite() {
	local p t patterns=()
	for p in "${conformance[@]}"; do
		for t in TestConformance TestConformanceAligned; do patterns+=("^$t\$${p:+/$p}"); done
	done
	for p in '^alone$/^experts' '^alone$/^matmul' '^experts$' '^matmul$' ''; do
		for t in TestRounded TestRoundedAligned TestSmall; do patterns+=("^$t\$${p:+/$p}"); done
	done
	deal cuda.test "${SKIP:-}" "${patterns[@]}"
}

# one runs a shard: its file, then a command to run it under.
one() {
	local shard=$1 program code=0 began=$SECONDS
	shift
	program=$(basename "$shard")
	program=${program#*.}
	local args
	mapfile -t args <"$shard"
	local left=$((ends - EPOCHSECONDS))
	if [ $left -le 0 ]; then
		echo "== $program ${args[*]}: exit 124, not begun" >"$shard.log"
		return 124
	fi
	# a process compiles one kernel ahead of need, not a quarter of the processors' number
	GOMAXPROCS=4 timeout -k 5 $left "$@" "$work/$program" -test.v -test.timeout 0 "${args[@]}" >"$shard.log" 2>&1 || code=$?
	echo "== $program ${args[*]}: exit $code, $((SECONDS - began)) s" >>"$shard.log"
	return $code
}
export -f one
export work ends

# shards runs those that were dealt: part command...
shards() {
	local part=$1 code=0 began=$SECONDS
	shift
	ends=$((EPOCHSECONDS + limit))
	find "$work/shards" -type f | sort | xargs -P "$(nproc)" -I{} bash -c 'one "$@"' one {} "$@" || code=1
	cat "$work"/shards/*.log >"$out/$part.log"
	rm -r "$work/shards"
	failed=$((failed | code))
	say "$part: exit $code, $((SECONDS - began)) s, passed $(grep -c -- '--- PASS' "$out/$part.log"), failed $(grep -c -- '--- FAIL' "$out/$part.log")," \
		"shards that failed: $(grep -c '^== .*: exit [1-9]' "$out/$part.log")"
	grep -E -- '--- FAIL|^panic|^== .*: exit [1-9]' "$out/$part.log" | head -20
}

part_conformance() {
	mkdir "$work/shards"
	suite
	deal cuda.test '^TestProbeOutOfMemory$' '^TestProbe'
	shards conformance
	logged probe "$work/cuda.test" -test.v -test.run '^TestProbeOutOfMemory$' # no other process is to take memory
}

part_engine() {
	mkdir "$work/shards"
	deal actors.test '' "${engine[@]}"
	shards engine
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
	suite
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
	[ $code = 0 ] || failed=1
	say "$part: exit $code, $((SECONDS - began)) s: ${*:2:4}"
}

part_figures() { logged figures "$work/cuda.test" -test.run '^$' -test.bench . -test.benchtime 0.1s; }

part_program() {
	local program="$work/moeflux-actor" shape model bench
	for shape in qwen3-30b-a3b qwen3.5-35b-a3b; do
		model="$work/$shape"
		logged program "$program" synth --shape $shape "$model"
		bench=("$program" bench --device cuda --cache-dir "${MOEFLUX_CUDA_CACHE%/*}" --model "$model" --gen-tokens 64)
		logged program "${bench[@]}" --sequences 1,8,32 --prompt-tokens 512 --repeat 1 # compiles
		logged program "${bench[@]}" --sequences 1,8,32 --prompt-tokens 512 --repeat 3
		logged program "${bench[@]}" --expert-memory 4GiB --prompt-tokens 64 --repeat 2
		logged program "$program" synth --check "$model" --device cuda --cache-dir "${MOEFLUX_CUDA_CACHE%/*}"
		rm -r "$model"
	done
}

# Four layers hold all kinds of layers that these shapes have. Kernels run one after the other, with
# caches and clocks as they are. The counters take 20 ms a kernel, so they are read for a few tokens
# only, after some thousand kernels: bench's 100 tokens before it measures, and all prompts. How many
# texts a step really holds is the grid of embed, 8 a text.
part_account() {
	local program="$work/moeflux-actor" shape ncu
	ncu=$(command -v ncu || ls /usr/local/cuda*/bin/ncu 2>/dev/null | head -1)
	if [ -z "$ncu" ]; then
		say "account: there is no ncu here"
		failed=1
		return
	fi
	for shape in qwen3-30b-a3b qwen3.5-35b-a3b; do
		local model="$work/$shape-4"
		local bench=("$program" bench --device cuda --cache-dir "${MOEFLUX_CUDA_CACHE%/*}" --model "$model" --gen-tokens 64 --repeat 1 --prompt-tokens 512)
		logged account "$program" synth --shape $shape --layers 4 "$model"
		logged account "${bench[@]}" --sequences 1,8,32 # compiles
		counted prompt 1 0 100
		counted decode 1 5650 200
		counted decode 8 7200 200
		if [ $shape = qwen3-30b-a3b ]; then counted decode 32 7800 150; else counted decode 32 9800 200; fi
	done
}

counted() { # name texts first kernels
	logged account "$ncu" --clock-control none --cache-control none --page raw --csv --print-units base --launch-skip "$3" --launch-count "$4" \
		--metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum --log-file "$out/$shape-$1-$2.csv" "${bench[@]}" --sequences "$2"
}

nvidia-smi >"$out/machine.log" 2>&1
[ $# -gt 0 ] || set -- conformance engine memcheck racecheck
for p; do "part_$p"; done
exit $failed
