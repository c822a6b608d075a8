#!/usr/bin/env bash
# Installs a wheel into an empty virtual environment and runs the package's tests there.
set -euo pipefail
folder=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
readonly folder

if [[ $# -lt 1 || $1 == -* ]]; then
  echo "Usage: client/python/tests/run.sh WHEEL [PYTEST-ARGUMENT...]   (PYTHON=PROGRAM: the interpreter, default /usr/bin/python3)" >&2
  exit 2
fi
wheel=$(realpath "$1")
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tilewire-python.XXXXXX")
trap 'rm -rf "$work"' EXIT
"${PYTHON:-/usr/bin/python3}" -m venv "$work/venv"
pip=("$work/venv/bin/pip" --quiet --disable-pip-version-check install --constraint "$folder/versions.txt")
start=$SECONDS
"${pip[@]}" "$wheel"
printf 'installed %s and its dependencies in %d s, %d MiB\n' "${wheel##*/}" $((SECONDS - start)) \
  "$(du -sm "$work/venv" | cut -f 1)"
"${pip[@]}" pytest pytest-timeout mypy ml_dtypes grpcio pyarrow pyelftools 'dask[array]' distributed \
  matplotlib nbclient nbformat ipykernel
# From elsewhere, so that nothing but the wheel can be imported.
cd "$work"
"$work/venv/bin/python" -B -m pytest -c "$folder/pyproject.toml" -p no:cacheprovider "$@" "$folder/tests"
