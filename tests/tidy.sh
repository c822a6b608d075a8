#!/usr/bin/env bash
# clang-tidy over the engine: its groups bugprone, concurrency and performance must have nothing to say (.clang-tidy names
# the few checks that are left out). Usage: tests/tidy.sh [BUILD]   (a configured build folder, default build/dev)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}
[[ -e $build/compile_commands.json ]] || { echo "tests/tidy.sh: error: configure first: cmake --preset dev" >&2; exit 2; }
run-clang-tidy-14 -quiet -p "$build" -j "${JOBS:-$(nproc)}" "$PWD/server/engine/.*\.cc\$"
