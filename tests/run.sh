#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests: stage by stage, stopping at the first stage that fails.
# The last line printed is always "N passed, N failed, N skipped", the totals over the stages that ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
Usage: tests/run.sh [--quick | --full] [--no-install]
  (no option)   what CI runs: every test once, with AddressSanitizer + UBSan (`asan`); the optimised build with CUDA and what
                it alone can show (`optimised`); ThreadSanitizer where there are threads (`tsan`)
  --quick       the `dev` build and all its tests, no sanitizers
  --full        what CI runs, then what it leaves out (tests/README.md)
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

# build PRESET [TARGET...]: all targets where none is named.
build() {
  local preset=$1
  shift
  cmake --preset "$preset"
  cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"}
}

# add_counts JUNIT REPORTS: adds what a run of tests wrote down to the totals.
add_counts() {
  local result=0 counts p f s
  counts=$(python3 -B tests/count.py --slowest 10 "$@") || result=1
  printf '%s\n' "$counts" | tail -n +2
  read -r p f s <<<"$(head -n 1 <<<"$counts")"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  return "$result"
}

# run_tests PRESET CTEST-ARGUMENTS...: one CTest run, its counts added to the totals.
run_tests() {
  local preset=$1 result=0
  local junit=$PWD/build/$preset/junit.xml reports=$PWD/build/$preset/reports
  shift
  rm -rf "$junit" "$reports"
  # One more than processors: many tests wait for sockets and for processes that end.
  "${unrandomised[@]}" ctest --test-dir "build/$preset" --no-tests=error --output-on-failure --output-junit "$junit" -j $((jobs + 1)) "$@" ||
    result=$?
  add_counts "$junit" "$reports" || result=1
  return "$result"
}

# The tests of the Python package, on the wheel that deploy/wheel.sh has just built.
run_python() {
  local result=0 junit=$PWD/build/wheel/junit.xml wheels=(build/wheel/dist/*.whl)
  rm -f "$junit"
  client/python/tests/run.sh "${wheels[0]}" --junitxml "$junit" || result=$?
  add_counts "$junit" build/wheel/no-reports || result=1
  return "$result"
}

build_wheel() {
  rm -rf build/wheel/dist
  deploy/wheel.sh --output build/wheel/dist --no-install
}

# run_script NAME COMMAND...: a test that CTest does not know; exit code 77 says that it was skipped.
run_script() {
  local name=$1 result=0
  shift
  "$@" || result=$?
  case $result in
    0) ((++passed)) ;;
    77) ((++skipped)); printf 'skipped: %s\n' "$name" ;;
    *) ((++failed)); return "$result" ;;
  esac
}

# The example of a language, against the server of the dev build. On Debian its packages must be there.
run_example() {
  local require=()
  if grep -qsx 'ID=debian' /etc/os-release; then require=(--require); fi
  run_script "$1 example" /usr/bin/python3 -B tests/languages/example_test.py "${require[@]}" "$1" build/dev/bin/tilewired
}

build_bundle() {
  cmake --preset release -DTILEWIRE_TESTS=OFF
  cmake --build build/release -j "$jobs" --target bundle
}

# What CI leaves out (README.md beside this file).
run_full() {
  local bundle=build/release/bundle
  run_stage "dev: build" build dev
  run_stage "dev: tests" run_tests dev
  if [[ $install == yes ]]; then run_stage "more packages" deploy/install-deps.sh --image --languages --tidy --wheel; fi
  run_stage "clang-tidy" tests/tidy.sh
  run_stage "release: bundle" build_bundle
  run_stage "python: wheel" build_wheel
  run_stage "python: tests" run_python
  run_stage "go: example" run_example go
  run_stage "java: example" run_example java
  run_stage "image" run_script image tests/image/image_test.py "$bundle"
  run_stage "dockerfile" run_script dockerfile tests/image/dockerfile_test.py "$bundle"
}

main() {
  local quick=no full=no install=yes
  while [[ $# -gt 0 ]]; do
    case $1 in
      --quick) quick=yes ;;
      --full) full=yes ;;
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
  source tests/environment.sh

  if [[ $install == yes ]]; then run_stage "packages" deploy/install-deps.sh --tests; fi
  if [[ $quick == yes ]]; then
    run_stage "dev: build" build dev
    run_stage "dev: tests" run_tests dev
    return
  fi
  run_stage "lint" tests/lint.sh
  run_stage "asan: build" build asan tests_unit tests_integration
  run_stage "asan: tests" run_tests asan -L '^(unit|integration)$'
  run_stage "optimised: build" build optimised tests_optimised tests_script tests_gpu
  run_stage "optimised: tests" run_tests optimised -L '^(optimised|script|gpu)$'
  run_stage "tsan: build" build tsan tests_tsan
  run_stage "tsan: tests" run_tests tsan -L '^tsan$'
  if [[ $full == yes ]]; then run_full; fi
}

main "$@"
