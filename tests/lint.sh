#!/usr/bin/env bash
# What the sources must look like: clang-format, shellcheck, ruff. Prints what is wrong and how to mend it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Its answers depend on the version. ruff is no Debian package: it comes into a folder of the build.
readonly CLANG_FORMAT=clang-format-14 RUFF_VERSION=0.6.9 VENV=build/lint

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

ruff() {
  if [[ ! -x $VENV/bin/ruff || $("$VENV/bin/ruff" --version) != "ruff $RUFF_VERSION" ]]; then
    /usr/bin/python3 -m venv "$VENV"
    "$VENV/bin/pip" --quiet --disable-pip-version-check install "ruff==$RUFF_VERSION"
  fi
  "$VENV/bin/ruff" check --no-cache .
}

failed=0
files '*.cc' '*.h' '*.cu' '*.cuh' | xargs -P "$(nproc)" -n 40 "$CLANG_FORMAT" --dry-run -Werror || {
  echo "lint: mend it by: $CLANG_FORMAT -i FILES"; failed=1; }
files '*.sh' .ci/run | xargs shellcheck -x || failed=1
ruff || { echo "lint: mend what can be by: $VENV/bin/ruff check --fix"; failed=1; }
if [[ $failed -eq 0 ]]; then echo "lint: nothing to mend"; else echo "lint: FAILED (above)"; fi
exit "$failed"
