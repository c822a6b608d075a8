#!/usr/bin/env bash
# Collects what long runs on another machine need: programs, their libraries, seeds of fuzzers, stubs.
#
#   tests/chaos/carry.sh OUT BUNDLE...
#
# A BUNDLE is what `cmake --build DIR --target bundle` makes: of a server's build, of the build with fuzzers (preset `fuzz`), or both.
# There: python3 -B tests/chaos/long.py OUT RESULTS, with python3 that has grpcio, protobuf and numpy, and openssl.
set -euo pipefail
out=${1:?usage: carry.sh OUT BUNDLE...}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
rm -rf "$out"
mkdir -p "$out"/{bin,lib,share/stubs}
for bundle; do
  for program in "$bundle"/bin/{tilewired,tilewired_faulty,tilewire,fuzz_*}; do
    [[ ! -e $program ]] || cp "$program" "$out/bin/"
  done
  # Both kinds of build take them from the same packages.
  cp -n "$bundle"/lib/* "$out/lib/"
done
cp -r "$root/tests/fuzz/corpus" "$out/share/corpus"
[[ ! -e $out/bin/fuzz_connection ]] || python3 -B "$root/tests/fuzz/connection/seeds.py" "$out/share/corpus/connection"
protoc -I "$root/proto" --python_out="$out/share/stubs" --grpc_python_out="$out/share/stubs" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" tilewire/v1/{types,kernels,arrays,regions}.proto
du -sm "$out"
