#!/usr/bin/env bash
# Runs every operation on random arrays at a server that is up, and checks the answers against numpy.
# Leaves nothing behind. The quickstart and the test of the container image share it.
set -euo pipefail

# Debian's own interpreter: another python3 on PATH may lack numpy.
readonly PYTHON=/usr/bin/python3
readonly SIZE=2048

usage() {
  cat <<TEXT
Usage: deploy/check.sh ADDRESS [CLIENT]
  ADDRESS  where the server listens, for example localhost:50051 or unix:/run/tilewired.sock
  CLIENT   the program to call it with (default: tilewire, as found on PATH)
Runs RMSE, transpose and gaussian pdf on random $SIZE x $SIZE arrays. Exit code: 0 when every answer is right, else 1.
TEXT
}

step() { printf '\n==> %s\n' "$*"; }
fail() { printf '\ncheck: error: %s\n' "$*" >&2; exit 1; }

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

main() {
  case ${1:-} in
    -h | --help) usage; return ;;
    "" | -*) usage >&2; return 2 ;;
  esac
  export TILEWIRE_SERVER=$1
  local client=${2:-tilewire} answer
  command -v "$client" >/dev/null || fail "there is no client program $client."
  "$PYTHON" -c 'import numpy' 2>/dev/null || fail "$PYTHON has no numpy (package python3-numpy)."
  work=$(mktemp -d "${TMPDIR:-/tmp}/tilewire-check.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  make_arrays
  step "RMSE: tilewire rmse A.npy B.npy --timing"
  answer=$("$client" rmse "$work/A.npy" "$work/B.npy" --timing) || fail "tilewire rmse failed."
  echo "RMSE = $answer"
  check_rmse "$answer" || fail "wrong RMSE."
  step "Transpose: tilewire transpose A.npy T.npy --timing"
  "$client" transpose "$work/A.npy" "$work/T.npy" --timing || fail "tilewire transpose failed."
  check_transpose || fail "wrong transpose."
  step "Gaussian pdf: tilewire gaussian-pdf A.npy G.npy --mean 0.5 --stddev 0.2 --timing"
  "$client" gaussian-pdf "$work/A.npy" "$work/G.npy" --mean 0.5 --stddev 0.2 --timing ||
    fail "tilewire gaussian-pdf failed."
  check_gaussian 0.5 0.2 || fail "wrong gaussian pdf."
}

main "$@"
