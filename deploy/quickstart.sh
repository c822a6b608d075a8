#!/usr/bin/env bash
# From a fresh checkout to verified answers: installs the packages, builds server and client, starts the server on the
# best device present, runs every operation on real arrays, checks the answers against numpy and shows the timing.
# Leaves the build in build/quickstart and nothing else: no process, no temporary file. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD=build/quickstart
# Debian's own interpreter: another python3 on PATH may lack numpy.
readonly PYTHON=/usr/bin/python3
readonly START_SECONDS=60 STOP_SECONDS=40

usage() {
  cat <<'TEXT'
Usage: deploy/quickstart.sh [--no-install]
  --no-install  do not install missing packages
JOBS=N sets the number of parallel build jobs (default: processors, at most one per 1.5 GB of free memory).
TEXT
}

step() { printf '\n==> %s\n' "$*"; }
fail() { printf '\nquickstart: error: %s\n' "$*" >&2; exit 1; }

server_pid="" address="" work=""

# Runs on every way out: ends the server, removes the temporary folder.
clean_up() {
  local status=$?
  trap - EXIT INT TERM
  if [[ -n $server_pid ]]; then
    kill -TERM "$server_pid" 2>/dev/null || true
    wait_for_exit "$STOP_SECONDS" || kill -KILL "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  if [[ $status -ne 0 && -n $work && -s $work/server.err ]]; then
    printf '\nThe last lines of the server:\n' >&2
    tail -n 20 "$work/server.err" >&2
  fi
  [[ -z $work ]] || rm -rf "$work"
  exit "$status"
}

# True when the server ended within the given seconds.
wait_for_exit() {
  local tenths=$(($1 * 10))
  while kill -0 "$server_pid" 2>/dev/null; do
    ((tenths-- > 0)) || return 1
    sleep 0.1
  done
}

check_machine() {
  local free_mib
  [[ $(uname -s) == Linux ]] || fail "this is $(uname -s); Tilewire's server runs on Linux."
  free_mib=$(df -Pm . | awk 'NR == 2 {print $4}')
  ((free_mib >= 2000)) || fail "only $free_mib MiB are free here; the build needs 2000."
}

# True where both a CUDA compiler and a GPU to run on are present.
find_cuda() {
  local nvcc
  nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2>/dev/null) || return 1
  if command -v nvidia-smi >/dev/null; then nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || return 1
  else [[ -e /dev/nvidia0 || -e /dev/dxg ]] || return 1; fi
  cuda_compiler=$nvcc
}

build() {
  local cuda=(-DTILEWIRE_CUDA=OFF) cpus by_memory
  if find_cuda; then
    echo "GPU and $cuda_compiler found: building the CUDA device for this GPU."
    cuda=(-DTILEWIRE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native "-DCMAKE_CUDA_COMPILER=$cuda_compiler")
  else
    echo "No GPU, or no CUDA compiler, on this machine: building the CPU device, which gives the same bits."
  fi
  cpus=$(nproc)
  by_memory=$(awk '/^MemAvailable/ {n = int($2 / 1500000); print (n < 1 ? 1 : n)}' /proc/meminfo)
  cmake --preset release -B "$BUILD" -DTILEWIRE_TESTS=OFF "${cuda[@]}" >"$BUILD.log" 2>&1 ||
    { cat "$BUILD.log" >&2; fail "CMake could not configure the build (above)."; }
  cmake --build "$BUILD" -j "${JOBS:-$((cpus < by_memory ? cpus : by_memory))}" --target tilewired tilewire
}

start_server() {
  local tenths=$((START_SECONDS * 10)) line=""
  "$BUILD/bin/tilewired" --device auto --listen localhost:0 >"$work/server.out" 2>"$work/server.err" &
  server_pid=$!
  until line=$(grep -m 1 '^tilewired ready ' "$work/server.out"); do
    kill -0 "$server_pid" 2>/dev/null || fail "the server ended before it was ready."
    ((tenths-- > 0)) || fail "the server was not ready after $START_SECONDS seconds."
    sleep 0.1
  done
  echo "$line"
  line=${line#tilewired ready }
  address=${line%% *}
}

stop_server() {
  local status=0 pid=$server_pid
  kill -TERM "$pid"
  wait_for_exit "$STOP_SECONDS" || fail "the server did not end within $STOP_SECONDS seconds."
  server_pid=""
  wait "$pid" || status=$?
  [[ $status -eq 0 ]] || fail "the server ended with exit code $status instead of 0."
  echo "The server drained and ended with exit code 0."
}

main() {
  local install=yes
  case ${1:-} in
    "") ;;
    --no-install) install=no ;;
    -h | --help) usage; return ;;
    *) usage >&2; printf 'quickstart: error: unknown option %s\n' "$1" >&2; return 2 ;;
  esac
  cat <<TEXT
Tilewire quickstart: installs the packages that are missing, builds server and client in $BUILD (some minutes the
first time), starts the server, and runs RMSE, transpose and gaussian pdf on random arrays (deploy/check.sh).
TEXT
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  check_machine

  if [[ $install == yes ]]; then step "Packages"; deploy/install-deps.sh --python; fi
  "$PYTHON" -c 'import numpy' 2>/dev/null || fail "$PYTHON has no numpy (package python3-numpy)."
  step "Build"
  mkdir -p build
  build
  step "Server"
  work=$(mktemp -d "${TMPDIR:-/tmp}/tilewire-quickstart.XXXXXX")
  start_server
  deploy/check.sh "$address" "$BUILD/bin/tilewire" || fail "the server does not answer as it should."
  step "Stop"
  stop_server
  cat <<TEXT

Everything is right. What next:
  $BUILD/bin/tilewired        a server on localhost:50051 (Ctrl-C ends it)
  $BUILD/bin/tilewire info    in another terminal: what it runs on
  $BUILD/bin/tilewire --help  what else the client can do
  deploy/wheel.sh                   the Python package, to install with pip
  tests/run.sh --quick              build and run the tests
TEXT
}

main "$@"
