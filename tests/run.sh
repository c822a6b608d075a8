#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests: stage by stage, stopping at the first stage that fails.
# The last line printed is always "N passed, N failed, N skipped", the totals over the stages that ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
Usage: tests/run.sh [--quick] [--no-install]
  --quick       the `dev` build and its tests only; without it also AddressSanitizer + UBSan (`asan`) and
                ThreadSanitizer (`tsan`, kernels and engine)
  --no-install  do not install missing packages
JOBS=N sets the number of parallel build jobs and tests (default: processors, at most one per 1.5 GB of free memory).
TEXT
}

default_jobs() {
  local cpus by_memory
  cpus=$(nproc)
  by_memory=$(awk '/^MemAvailable/ {n = int($2 / 1500000); print (n < 1 ? 1 : n)}' /proc/meminfo)
  echo $((cpus < by_memory ? cpus : by_memory))
}

passed=0 failed=0 skipped=0
stage="" summary=()

# Prints the totals whatever happened; a stage that is still set did not finish.
finish() {
  local status=$?
  printf '\n'
  [[ ${#summary[@]} -eq 0 ]] || printf '%s\n' "${summary[@]}"
  if [[ -n $stage && $status -ne 0 ]]; then
    printf 'FAILED in stage: %s\n' "$stage"
    [[ $failed -gt 0 ]] || failed=1 # a stage that broke before its tests counts as a failure
  fi
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [[ $failed -eq 0 ]] || exit 1
  exit "$status"
}

# run_stage NAME COMMAND...: runs the command under a headline and notes its time.
run_stage() {
  stage=$1
  shift
  local start=$SECONDS
  printf '\n==== %s\n' "$stage"
  "$@"
  summary+=("$(printf '%-28s ok  %4d s' "$stage" $((SECONDS - start)))")
  stage=""
}

build() {
  cmake --preset "$1"
  cmake --build "build/$1" -j "$jobs"
}

# Reads one count from the <testsuite> element of a JUnit file that CTest wrote.
junit_count() {
  sed -n "/<testsuite/,/>/ s/^.*[[:space:]]$2=\"\([0-9]*\)\".*\$/\1/p" "$1" | head -n 1
}

# ctest_part PRESET NAME CTEST-ARGUMENTS...: one CTest run, its counts added to the totals.
ctest_part() {
  local preset=$1 report=$PWD/build/$1/junit-$2.xml result=0 total bad skip wrapper=()
  shift 2
  rm -f "$report"
  # GCC 12's sanitizers cannot place their shadow memory on kernels that randomise 32 bits of the address space.
  if [[ $preset != dev ]] && setarch "$(uname -m)" -R true 2>/dev/null; then wrapper=(setarch "$(uname -m)" -R); fi
  "${wrapper[@]}" ctest --test-dir "build/$preset" --no-tests=error --output-on-failure --output-junit "$report" "$@" || result=$?
  [[ -s $report ]] || { echo "ctest wrote no report"; return 1; }
  total=$(junit_count "$report" tests)
  bad=$(junit_count "$report" failures)
  skip=$(($(junit_count "$report" skipped) + $(junit_count "$report" disabled)))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  passed=$((passed + total - bad - skip))
  return "$result"
}

# Unit tests side by side; tests that open sockets or a GPU one at a time, so that they do not disturb each other's time.
run_tests() {
  ctest_part "$1" unit -j "$jobs" -LE '^(integration|gpu)$'
  ctest_part "$1" integration -j 1 -L '^(integration|gpu)$'
}

run_tsan_tests() { ctest_part tsan tsan -j "$jobs" -L '^tsan$'; }

main() {
  local quick=no install=yes
  while [[ $# -gt 0 ]]; do
    case $1 in
      --quick) quick=yes ;;
      --no-install) install=no ;;
      -h | --help) usage; return ;;
      *) usage >&2; printf 'tests/run.sh: error: unknown option %s\n' "$1" >&2; return 2 ;;
    esac
    shift
  done
  jobs=${JOBS:-$(default_jobs)}
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # GPU tests skip themselves without a device; with one, AddressSanitizer must leave CUDA its address ranges.
  export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:protect_shadow_gap=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
  export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
  export CLICOLOR_FORCE=0 GTEST_COLOR=no

  if [[ $install == yes ]]; then run_stage "packages" deploy/install-deps.sh --tests; fi
  run_stage "dev: build" build dev
  run_stage "dev: tests" run_tests dev
  if [[ $quick == yes ]]; then return; fi
  run_stage "asan: build" build asan
  run_stage "asan: tests" run_tests asan
  run_stage "tsan: build" build tsan
  run_stage "tsan: tests" run_tsan_tests
}

main "$@"
