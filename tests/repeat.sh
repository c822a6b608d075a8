#!/usr/bin/env bash
# Repeats the tests that CI runs, to find those that do not pass always. Builds nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
Usage: tests/repeat.sh N [--load] [--only REGEX] [--seed S]
Runs the tests of build/asan, build/optimised and build/tsan N times (those that tests/run.sh has built), each time in
another order of cases.
  --load        keep all processors busy beside them (stress-ng)
  --only REGEX  only CTest entries whose names match
  --seed S      of the first repetition (default: drawn); the others count on from it
Prints a line a repetition; what a failing one printed is kept in build/repeat/SEED-BUILD.log. Ends with "N passed, N failed".
TEXT
}

count="" load=no only=. seed=$((RANDOM % 90000 + 1))
while [[ $# -gt 0 ]]; do
  case $1 in
    --load) load=yes ;;
    --only) only=$2; shift ;;
    --seed) seed=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *[!0-9]* | "") usage >&2; printf 'tests/repeat.sh: error: unknown argument %s\n' "$1" >&2; exit 2 ;;
    *) count=$1 ;;
  esac
  shift
done
[[ -n $count ]] || { usage >&2; exit 2; }

source tests/environment.sh
declare -A labels=([asan]='^(unit|integration)$' [optimised]='^(optimised|script)$' [tsan]='^tsan$')
mkdir -p build/repeat
stress=""
end_load() { [[ -z $stress ]] || { kill "$stress" 2>/dev/null; wait "$stress" 2>/dev/null || true; }; }
trap end_load EXIT
trap 'exit 130' INT TERM
if [[ $load == yes ]]; then
  stress-ng --quiet --cpu "$(nproc)" &
  stress=$!
fi

passed=0 failed=0
for ((i = 0; i < count; ++i, ++seed)); do
  begin=$SECONDS verdict=passed
  for build in asan optimised tsan; do
    [[ -e build/$build/CTestTestfile.cmake ]] || continue
    log=build/repeat/$seed-$build.log
    # Seeds of GoogleTest end at 99,999.
    if GTEST_SHUFFLE=1 GTEST_RANDOM_SEED=$seed TILEWIRE_SEED=$seed "${unrandomised[@]}" ctest --test-dir "build/$build" \
      --no-tests=error --output-on-failure -j "$(nproc)" -L "${labels[$build]}" -R "$only" >"$log" 2>&1; then
      rm "$log"
    else
      verdict="FAILED in $build ($log): $(sed -n 's/^\t *[0-9]* - \(.*\) (.*)$/\1/p' "$log" | paste -sd ' ')"
      break
    fi
  done
  if [[ $verdict == passed ]]; then ((++passed)); else ((++failed)); fi
  printf 'seed %d: %4d s  %s\n' "$seed" $((SECONDS - begin)) "$verdict"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
