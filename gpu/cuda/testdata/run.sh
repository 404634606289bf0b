#!/usr/bin/env bash
# Runs what bundle.sh made on a machine with an NVIDIA GPU: conformance, the sanitizers where they are, the engine against its references, figures
# of the device, of operations, and of a synthetic model of full size. It takes about seven minutes and 20 GB below /tmp.
#
#   BUNDLE/run.sh [OUT]
#
# OUT, by default ./out, gets a log for each part. The exit code is that of the tests.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-./out}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
export MOEFLUX_CUDA_CACHE=$work/cache/cuda
for f in "$here"/*.gz; do gzip -dc "$f" >"$work/$(basename "$f" .gz)"; done
chmod +x "$work"/*
failed=0

part() { # name seconds command...: adds the command's output to the log of that name
	local name=$1 limit=$2 began=$SECONDS code=0
	shift 2
	echo "\$ $*" >>"$out/$name.log"
	timeout -k 5 "$limit" "$@" >>"$out/$name.log" 2>&1 || code=$?
	echo "$name: exit $code, $((SECONDS - began)) s"
	[ "$name" != tests ] || failed=$((failed | code))
}

nvidia-smi >"$out/machine.log" 2>&1
part tests 150 "$work/cuda.test" -test.v -test.run '^TestConformance$|^TestProbe'
part tests 120 "$work/actors.test" -test.v -test.run 'TestCUDA'
grep -E -- '--- FAIL|^panic|^FAIL' "$out/tests.log"
if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1) && [ -n "$sanitizer" ]; then
	for tool in memcheck racecheck; do
		part sanitizers 90 "$sanitizer" --tool $tool --print-limit 20 "$work/cuda.test" -test.run '^TestConformance$'
	done
	grep SUMMARY "$out/sanitizers.log"
fi
part figures 120 "$work/cuda.test" -test.run '^$' -test.bench . -test.benchtime 0.1s
program="$work/moeflux-actor"
part program 60 "$program" synth --shape qwen3-30b-a3b "$work/synth"
bench=("$program" bench --device cuda --cache-dir "$work/cache" --model "$work/synth" --gen-tokens 64 --repeat 2)
part program 120 "${bench[@]}" --sequences 1,8,32 --prompt-tokens 512
part program 60 "${bench[@]}" --expert-memory 4GiB --prompt-tokens 64
part program 30 "$program" synth --check "$work/synth" --device cuda --cache-dir "$work/cache"
exit $failed
