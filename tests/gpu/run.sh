#!/usr/bin/env bash
# Tests everything that needs a GPU from a bundle (cmake --build DIR --target bundle), on a machine without compilers or gRPC.
#
#   tests/gpu/run.sh BUNDLE [STAGE...]      stages: tests sanitizer numpy kernels chaos   (default: all)
#
# measure.sh beside it measures. Needs an NVIDIA driver; `sanitizer` needs compute-sanitizer, `numpy` python3 with numpy, `chaos` also
# grpcio, protobuf and openssl, and STUBS, a folder that tests/chaos/carry.sh has made, unless protoc is there.
# Ends with one line a stage; the exit code is 0 when all of them passed.
set -uo pipefail
bundle=${1:?usage: run.sh BUNDLE [STAGE...]}
shift
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(tests sanitizer numpy kernels chaos)
bin=$bundle/bin
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpu_tests() { "$bin/tilewire_gpu_tests" --gtest_brief=1; }

# The checkers slow kernels down a hundredfold, so the largest shapes are left to the plain run; tests that provoke
# errors on purpose would be reported as errors. Kernels that read whole words past an array's end into its padding would
# be told by initcheck wherever that padding was never written, so it looks at the kernel tests alone.
kernel_tests='*Sanitized*:RmseCuda.Golden*:GaussianCuda.Golden:GaussianCuda.Correctly*'
engine_tests='CudaSeam.*:CudaMemory.FreedPieces*:CudaMemory.Pinned*'
# Copies by a kernel: it shares nothing between threads that racecheck would look at.
copy_tests='*CopyBytesTest.*'
region_tests='CudaRegions.Pinned*:CudaRegions.CopiesOf*:CudaRegions.Jobs*:CudaRegions.Shrunk*'
service_tests='GpuService.*EveryDtype*:GpuService.*Unary*'
check() {  # TOOL FILTER
  echo "--- $1 $2"
  timeout 200 compute-sanitizer --tool "$1" --error-exitcode 1 "$bin/tilewire_gpu_tests" --gtest_brief=1 \
    "--gtest_filter=$2" | tail -n 6
}
sanitizer() {
  local failed=0 tool
  for tool in memcheck initcheck racecheck synccheck; do check "$tool" "$kernel_tests" || failed=1; done
  for tool in memcheck initcheck; do check "$tool" "$copy_tests" || failed=1; done
  check memcheck "$region_tests" || failed=1
  for tool in memcheck racecheck; do
    check "$tool" "$engine_tests" || failed=1
    check "$tool" "$service_tests" || failed=1
  done
  return "$failed"
}

numpy() {
  python3 "$here/../integration/numpy_check.py" "$bin/tilewired" "$bin/tilewire" --device cuda "${NUMPY_FLAGS:---large}" &&
    python3 -B "$here/../integration/compare_check.py" "$bin/tilewired" "$bin/tilewire" --device cuda
}

# A smoke run: every GPU case a few times, each checked, but for kernels that are not chosen, which the tests check.
# Measuring takes longer (kernels/bench/README.md).
# KERNELS_JSON names the file for its figures.
kernels() {
  "$bin/tilewire_kernel_bench" '^(?!host_|choices/)' --min-time 0 --max-time 0.01 --max-runs 20 --permutations 20 --bytes 4GiB \
    --json "${KERNELS_JSON:-kernels.json}"
}

# Attacks and disturbances on a server that computes on the GPU. tests/chaos/long.py makes longer runs of the latter.
chaos() {
  local chaos=$here/../chaos failed=0 program
  for program in doors_test holders_test; do
    python3 -B "$chaos/$program.py" "$bin/tilewired" "$bin/tilewire" --device cuda --report || failed=1
  done
  for program in tilewired tilewired_faulty; do
    python3 -B "$chaos/campaign.py" "$bin/$program" "$bin/tilewire" --device cuda --report ${STUBS:+--stubs "$STUBS"} || failed=1
  done
  return "$failed"
}

summary=() failed=0
for stage in "${stages[@]}"; do
  echo "=== $stage"
  begin=$SECONDS
  case $stage in
    tests) gpu_tests ;;
    sanitizer) sanitizer ;;
    numpy) numpy ;;
    kernels) kernels ;;
    chaos) chaos ;;
    *) echo "unknown stage $stage" >&2; exit 2 ;;
  esac
  code=$?
  [ $code -eq 0 ] || failed=1
  summary+=("$stage: $([ $code -eq 0 ] && echo passed || echo "FAILED ($code)"), $((SECONDS - begin)) s")
done
printf '%s\n' "${summary[@]}"
exit $failed
