#!/usr/bin/env bash
# From a fresh checkout to verified answers: installs the packages, builds server and client, starts the server on the
# best device present, runs every operation on real arrays, checks the answers against numpy and shows the timing.
# Leaves the build in build/quickstart and nothing else: no process, no temporary file. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BUILD=build/quickstart
# Debian's own interpreter: another python3 on PATH may lack numpy.
readonly PYTHON=/usr/bin/python3
readonly SIZE=2048
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

server_pid="" work=""

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
  TILEWIRE_SERVER=${line%% *}
  export TILEWIRE_SERVER
}

make_arrays() {
  "$PYTHON" - "$work" "$SIZE" <<'PY'
import sys
import numpy as np
folder, size = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng()
for name in "AB":
    np.save(f"{folder}/{name}.npy", rng.random((size, size), dtype=np.float32))
PY
}

# The RMSE of independent uniform arrays is sqrt(1/6), with a deviation of about 1.2e-4 at this size.
check_rmse() {
  "$PYTHON" - "$work" "$1" <<'PY'
import sys
import numpy as np
folder, answer = sys.argv[1], float(sys.argv[2])
a, b = (np.load(f"{folder}/{name}.npy").astype(np.float64) for name in "AB")
expected = float(np.sqrt(np.mean((a - b) ** 2)))
error = abs(answer - expected) / expected
print(f"numpy in float64: {expected!r}, relative difference {error:.1e}")
if not error <= 1e-14:
    sys.exit("the answer differs from numpy's by more than 1e-14")
if not abs(answer - (1 / 6) ** 0.5) < 1e-3:
    sys.exit("the answer is not that of two uniform arrays")
PY
}

check_transpose() {
  "$PYTHON" - "$work" <<'PY'
import sys
import numpy as np
a, t = np.load(f"{sys.argv[1]}/A.npy"), np.load(f"{sys.argv[1]}/T.npy")
if t.dtype != a.dtype or not np.array_equal(a.T, t):
    sys.exit("the transposed array differs from numpy's")
print(f"equal to numpy's, element for element: {t.shape[0]} x {t.shape[1]} {t.dtype}")
PY
}

# numpy's long double has 64 bits of mantissa on x86-64: rounded to f32 it is the correctly rounded value.
check_gaussian() {
  "$PYTHON" - "$work" "$1" "$2" <<'PY'
import sys
import numpy as np
folder, mean, stddev = sys.argv[1], np.longdouble(sys.argv[2]), np.longdouble(sys.argv[3])
x, y = np.load(f"{folder}/A.npy"), np.load(f"{folder}/G.npy")
z = (x.astype(np.longdouble) - mean) / stddev
exact = (np.exp(-z * z / 2) / (stddev * np.sqrt(2 * np.longdouble("3.14159265358979323846")))).astype(np.float32)
if y.dtype != x.dtype or y.shape != x.shape:
    sys.exit("the result has another dtype or shape")
off = np.abs(y.astype(np.float64) - exact) / np.spacing(exact)
if not off.max() <= 1:
    sys.exit(f"the answer differs from numpy's by {off.max()} units in the last place; allowed: 1")
print(f"equal to numpy's in long double: {100 * np.mean(y == exact):.3f}% of {y.size}, the rest 1 unit in the last place")
PY
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
  local install=yes answer
  case ${1:-} in
    "") ;;
    --no-install) install=no ;;
    -h | --help) usage; return ;;
    *) usage >&2; printf 'quickstart: error: unknown option %s\n' "$1" >&2; return 2 ;;
  esac
  cat <<TEXT
Tilewire quickstart: installs the packages that are missing, builds server and client in $BUILD (some minutes the
first time), starts the server, and runs RMSE, transpose and gaussian pdf on random $SIZE x $SIZE arrays.
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
  make_arrays
  step "RMSE: tilewire rmse A.npy B.npy --timing"
  answer=$("$BUILD/bin/tilewire" rmse "$work/A.npy" "$work/B.npy" --timing) || fail "tilewire rmse failed."
  echo "RMSE = $answer"
  check_rmse "$answer" || fail "wrong RMSE."
  step "Transpose: tilewire transpose A.npy T.npy --timing"
  "$BUILD/bin/tilewire" transpose "$work/A.npy" "$work/T.npy" --timing || fail "tilewire transpose failed."
  check_transpose || fail "wrong transpose."
  step "Gaussian pdf: tilewire gaussian-pdf A.npy G.npy --mean 0.5 --stddev 0.2 --timing"
  "$BUILD/bin/tilewire" gaussian-pdf "$work/A.npy" "$work/G.npy" --mean 0.5 --stddev 0.2 --timing ||
    fail "tilewire gaussian-pdf failed."
  check_gaussian 0.5 0.2 || fail "wrong gaussian pdf."
  step "Stop"
  stop_server
  cat <<TEXT

Everything is right. What next:
  $BUILD/bin/tilewired        a server on localhost:50051 (Ctrl-C ends it)
  $BUILD/bin/tilewire info    in another terminal: what it runs on
  $BUILD/bin/tilewire --help  what else the client can do
  tests/run.sh --quick              build and run the tests
TEXT
}

main "$@"
