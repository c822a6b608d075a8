#!/usr/bin/env bash
# Measures everything that the READMEs' tables hold, from a bundle, and keeps what was printed in a folder.
#
#   tests/gpu/measure.sh BUNDLE RESULTS STAGE...      stages: wire windows engine small idle access overload timelines
#                                                     windowed study sweep agree peers price
#
# DEVICE (cuda) is the server's; SCALE (1) divides every size, for a rehearsal: DEVICE=cpu SCALE=64. Needs python3 with numpy for
# `timelines` and `windowed`, and room for 2 x 8 GiB / SCALE in SCRATCH (a folder in memory; /dev/shm). PEERS is the script that `peers` runs
# beside Tilewire. A stage writes RESULTS/STAGE.txt, and its JSON, SVG and HTML beside it; what fails is named at the end and the other stages go on.
set -uo pipefail
usage="usage: measure.sh BUNDLE RESULTS STAGE..."
bundle=${1:?$usage} results=${2:?$usage}
shift 2
bin=$bundle/bin device=${DEVICE:-cuda} scale=${SCALE:-1}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$results"
scratch=$(mktemp -d "${SCRATCH:-/dev/shm}/tilewire-XXXXXX") || exit 2
server_pid=""

stop_server() {
  [[ -z $server_pid ]] || { kill -TERM "$server_pid"; wait "$server_pid"; }
  server_pid=""
}
trap 'stop_server 2>/dev/null; rm -rf "$scratch"' EXIT

# start_server FLAGS...: a server on a free port; sets TILEWIRE_SERVER.
start_server() {
  : >"$scratch/ready"
  "$bin/tilewired" --listen localhost:0 --device "$device" --log-level warn "$@" >"$scratch/ready" 2>"$results/server.log" &
  server_pid=$!
  local tries=0
  until grep -q '^tilewired ready' "$scratch/ready"; do
    sleep 0.1
    if ! kill -0 "$server_pid" 2>/dev/null || ((++tries >= 300)); then
      echo "the server did not start"
      server_pid=""
      return 1
    fi
  done
  TILEWIRE_SERVER=$(awk '/^tilewired ready/ {print $3; exit}' "$scratch/ready")
  export TILEWIRE_SERVER
}

# mib N: N MiB divided by SCALE, at least 1.
mib() { echo $(($1 / scale > 0 ? $1 / scale : 1)); }

# array NAME ROWS COLUMNS: an f32 .npy file of random numbers, not written again where it is there.
array() {
  [[ -e $scratch/$1.npy ]] || python3 - "$scratch/$1.npy" "$2" "$3" <<'PY'
import sys
import numpy
rows, columns = int(sys.argv[2]), int(sys.argv[3])
out = numpy.lib.format.open_memmap(sys.argv[1], mode="w+", dtype="<f4", shape=(rows, columns))
part = numpy.random.default_rng(len(sys.argv[1])).standard_normal((min(rows, 256), columns), dtype="f4")
for row in range(0, rows, 256):
    count = min(256, rows - row)
    numpy.multiply(part[:count], numpy.float32(1 + row / rows), out=out[row:row + count])
PY
}

bench() { "$bin/tilewire_bench" --device "$device" "$@"; }

# Fixed receive windows of several sizes, and gRPC's own (0), in turns.
windows() {
  local kib
  for kib in 128 256 1024 0; do
    echo "--- window $kib KiB"
    bench wire --mib "$(mib 2048)" --rounds 5 --window-kib $kib || return
    bench wire --mib "$(mib 8192)" --rounds 3 --connections 8 --window-kib $kib || return
  done
}

wire() { bench wire --mib "$(mib 2048)" --rounds 7 && bench wire --mib "$(mib 8192)" --rounds 5 --connections 8; }

engine() {
  "$bin/tilewire_engine_bench" --device "$device" --mib "$(mib 4096)" --json "$results/engine.json"
}

small() {
  bench small --calls 5000 && bench callers && bench callers --shared && bench mixed --mib "$(mib 4096)"
}

idle() { bench idle --pauses $((40 / scale > 4 ? 40 / scale : 4)); }

access() { bench access --mib "$(mib 1024)" --connections 8; }

overload() {
  if [[ $scale == 1 ]]; then
    bench overload --mib 1024 --connections 500 --bulk 16 --small 16 --seconds 150
  else
    bench overload
  fi
}

# timeline NAME ARGUMENTS...: the call with overlap and without, in turns; the last of each is drawn, medians are printed.
timeline() {
  local name=$1 way
  shift
  : >"$results/$name.jsonl"
  for _ in 1 2 3 4 5; do
    for way in overlapped sequential; do
      local flags=(--connections 8 --json --timeline "$results/$name-$way.svg" --trace "$scratch/trace.json")
      [[ $way == overlapped ]] || flags+=(--no-overlap)
      "$bin/tilewire" "${flags[@]}" "$@" >"$scratch/answer.json" || return
      python3 "$here/timings.py" keep "$way" "$scratch/answer.json" >>"$results/$name.jsonl" || return
    done
  done
  python3 "$here/timings.py" table "$name" "$results/$name.jsonl"
}

timelines() {
  local side=$((8192 / (scale > 64 ? 8 : scale > 1 ? 4 : 1)))
  array a $((65536 / scale)) 16384 && array b $((65536 / scale)) 16384 || return # 4 GiB each
  array square "$side" "$side" && array gigabyte $((16384 / scale)) 16384 || return
  start_server || return
  timeline rmse rmse "$scratch/a.npy" "$scratch/b.npy" &&
    timeline transpose transpose "$scratch/square.npy" "$scratch/out.npy" &&
    timeline gaussian gaussian-pdf "$scratch/gigabyte.npy" "$scratch/out.npy" --mean 0.1 --stddev 1.5
  local result=$?
  stop_server
  rm -f "$scratch"/*.npy
  return $result
}

# RMSE over the last axis of 2 x 8 GiB with 4 GiB of device memory.
windowed() {
  array a $((131072 / scale)) 16384 && array b $((131072 / scale)) 16384 || return
  start_server --device-bytes "$(mib 4096)MiB" || return
  timeline windowed rmse "$scratch/a.npy" "$scratch/b.npy" --axis 1 --out "$scratch/out.npy"
  local result=$?
  stop_server
  rm -f "$scratch"/*.npy
  return $result
}

# What overlap is worth with the wire in the way and without it, the large calls' timelines, the scenarios.
study() {
  local operation size=$((128 / scale > 4 ? 128 / scale : 4)) result=0
  start_server --allow-regions /tilewire-measure || return
  "$bin/tilewire-load" ceilings --json "$results/ceilings.json" || result=1
  for operation in rmse transpose gaussian-pdf; do
    "$bin/tilewire-load" study "$operation" --sizes "$((size / 8 > 0 ? size / 8 : 1))MiB,$((size * 2))MiB" --connections 1,8 \
      --via region,wire --blocks 0,4MiB --lanes 1,4 --seconds 0.4 --json "$results/study-$operation.json" \
      --html "$results/study-$operation.html" || result=1
    "$bin/tilewire-load" study "$operation" --sizes "$((size * 8))MiB" --via region --blocks 0 --lanes 0,1 --seconds 2 \
      --json "$results/study-large-$operation.json" --html "$results/study-large-$operation.html" || result=1
  done
  for scenario in small mixed bulk resident region; do
    "$bin/tilewire-load" run "$here/../../deploy/load/$scenario.json" --seconds 5 --ceilings --json "$results/$scenario.json" \
      --html "$results/$scenario.html" || result=1
  done
  stop_server
  return $result
}

sweep() {
  python3 "$here/../bench/sweep.py" "$bundle" --device "$device" --mib "64,$(mib 1024)" --markdown "$results/sweep.md"
}

# Whether the load test, an independent client and the server's metrics agree.
agree() {
  local length=(--rounds 12 --budget 90)
  [[ $scale == 1 ]] || length=(--rounds 2 --budget 0)
  local code=0
  python3 "$here/../bench/agree.py" "$bundle" --device "$device" --callers 8,1 --rate 1000 "${length[@]}" --json "$results/agree.json" \
    --markdown "$results/agree.md" || code=$?
  [[ $code == 0 || $code == 3 ]]  # 3: what this machine's noise leaves undecided is a result too
}

# Every operation by the load test, beside what a user would pick instead.
peers() {
  python3 "$here/../bench/load_peers.py" "$bundle" --device "$device" --size "$(mib 256)MiB" --seconds 1 --rounds 2 \
    ${PEERS:+--peers "$PEERS"} --keep "$results/peers" --json "$results/peers.json" --markdown "$results/peers.md"
}

# What TLS, tokens and confinement cost.
price() {
  python3 "$here/../bench/price.py" "$bundle" --device "$device" --mib "$(mib 64),$(mib 256)" --json "$results/price.json"
}

# Who ends this script (timeout, Ctrl-C) ends the stage that runs, which then tells what it has; no other begins.
stopped=""
trap 'stopped=yes' TERM INT
failed=()
for stage in "$@"; do
  case $stage in
    wire | windows | engine | small | idle | access | overload | timelines | windowed | study | sweep | agree | peers | price) ;;
    *) echo "measure.sh: error: unknown stage $stage" >&2; exit 2 ;;
  esac
  [[ -z $stopped ]] || { failed+=("$stage (stopped before)"); continue; }
  echo "=== $stage"
  begin=$SECONDS
  "$stage" 2>&1 | (trap '' TERM INT && exec tee "$results/$stage.txt") || failed+=("$stage")
  echo "=== $stage: $((SECONDS - begin)) s"
done
[[ ${#failed[@]} -eq 0 ]] || { echo "FAILED: ${failed[*]}"; exit 1; }
