# shellcheck shell=bash
# Sourced by the scripts that run tests: what sanitizers are told, and `unrandomised`, the command before CTest.

# With a GPU, AddressSanitizer must leave CUDA its address ranges.
export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:protect_shadow_gap=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export CLICOLOR_FORCE=0 GTEST_COLOR=no

# Sanitizers cannot place their shadow memory on kernels that randomise 32 bits of the address space.
# shellcheck disable=SC2034
unrandomised=()
# shellcheck disable=SC2034
if setarch "$(uname -m)" -R true 2>/dev/null; then unrandomised=(setarch "$(uname -m)" -R); fi
