#!/usr/bin/env bash
# Installs the Debian 12 / Ubuntu 24.04 packages that Tilewire needs. Safe to run again: when every package is present
# it only says so. Run it as root, or as a user who may use sudo.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: deploy/install-deps.sh [--runtime | --tests] [--python] [--wheel] [--image] [--languages] [--tidy] [--list]
  (no option)  what a build of the programs and of the bundle needs
  --tests      that, and what the tests need (GoogleTest, Python with numpy and gRPC, HAProxy, linters, clang;
               on Debian also Chromium and protoc-gen-go)
  --python     also Python with numpy (the quickstart's check)
  --wheel      also what builds the Python package (Python's headers and venv)
  --image      also what makes a container image and tests it (buildah, podman, debootstrap)
  --languages  also what builds the examples in Go and Java (client/go, client/java); on Debian, elsewhere nothing
  --tidy       also clang-tidy
  --runtime    only what a machine needs to run a finished bundle
  --list       print the package names, install nothing
TEXT
}

# zlib, c-ares, re2 and abseil follow from libgrpc++-dev; fmt from spdlog; civetweb from prometheus-cpp.
readonly BUILD_PACKAGES=(
  ca-certificates g++ cmake ninja-build pkg-config git ccache binutils
  libgrpc++-dev libgrpc-dev libssl-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libspdlog-dev libcli11-dev nlohmann-json3-dev prometheus-cpp-dev libisal-dev libexpected-dev
  libseccomp-dev libcap-ng-dev
  libjs-chart.js)
readonly PYTHON_PACKAGES=(python3 python3-numpy)
readonly WHEEL_PACKAGES=(python3 python3-dev python3-venv)
# The HAProxy that its package may start listens nowhere until somebody configures it.
# clang-16 builds with sanitizers and looks at locks, the rest at form (tests/lint.sh) and time (tests/repeat.sh).
readonly TEST_PACKAGES=(libgtest-dev libgmock-dev haproxy mold clang-16 libclang-rt-16-dev llvm-16 clang-format-14 shellcheck stress-ng
  "${PYTHON_PACKAGES[@]}" python3-venv python3-protobuf python3-grpcio)
# Chromium looks at the load test's results page; Ubuntu has it as a snap only. protoc-gen-go takes the contract as Go
# programmers do. Without them those tests are skipped.
readonly DEBIAN_TEST_PACKAGES=(chromium protoc-gen-go)
# debootstrap makes the base on which the Dockerfile is tested without a registry.
readonly IMAGE_PACKAGES=(buildah podman runc debootstrap)
# The examples in other languages, without any network. Of Go's two packages of protobuf messages this is the one that knows
# what today's protoc-gen-go makes. libgrpc-java names no more than a part of what it needs at run time.
readonly DEBIAN_LANGUAGE_PACKAGES=(
  golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev protoc-gen-go protoc-gen-go-grpc
  default-jdk-headless libgrpc-java libprotobuf-java protobuf-compiler-grpc-java-plugin
  libguava-java libnetty-java libperfmark-java libgeronimo-annotation-1.3-spec-java)
# A bundle carries every library but glibc and the NVIDIA driver.
readonly RUNTIME_PACKAGES=(ca-certificates)

# The oldest versions that the sources compile with: "package version".
readonly MINIMUM_VERSIONS=("g++ 4:12" "cmake 3.25" "libgrpc++-dev 1.51" "libprotobuf-dev 3.21")

say() { printf 'install-deps: %s\n' "$*"; }
fail() { printf 'install-deps: error: %s\n' "$*" >&2; exit 1; }

# Fails on a distribution that is known to be wrong; relatives of Debian are judged by their packages later.
check_distribution() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "no apt here. Tilewire's packages are known for Debian 12 and Ubuntu 24.04; elsewhere use the Dockerfile."
  fi
  local ID="" VERSION_ID="" PRETTY_NAME="this distribution"
  # shellcheck source=/dev/null
  [[ -r /etc/os-release ]] && . /etc/os-release
  case $ID in
    debian) [[ -z $VERSION_ID ]] || dpkg --compare-versions "$VERSION_ID" ge 12 ||
      fail "$PRETTY_NAME is too old: Debian 12 or newer is needed (gRPC 1.51, CMake 3.25, GCC 12)." ;;
    ubuntu) dpkg --compare-versions "$VERSION_ID" ge 24.04 ||
      fail "$PRETTY_NAME is too old: Ubuntu 24.04 or newer is needed (gRPC 1.51, CMake 3.25, GCC 12)." ;;
    *) say "$PRETTY_NAME is neither Debian nor Ubuntu; trying with the packages it offers." ;;
  esac
}

on_debian() { grep -qsx 'ID=debian' /etc/os-release; }

# Prints those of the given packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || echo "$package"
  done
}

# Sets the array `as_root` to the prefix of commands that need root.
choose_root() {
  as_root=()
  if [[ $(id -u) -eq 0 ]]; then return; fi
  command -v sudo >/dev/null ||
    fail "not root, and there is no sudo. Ask an administrator to run: apt-get install $*"
  if ! sudo -n true 2>/dev/null && [[ ! -t 0 ]]; then
    fail "sudo wants a password and there is no terminal to ask for it. Run as root: apt-get install $*"
  fi
  as_root=(sudo)
}

# The version that apt would install; empty when it knows none.
candidate_version() {
  LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true
}

check_candidates() {
  local package unknown=() entry name minimum candidate
  for package in "$@"; do
    [[ -n $(candidate_version "$package") ]] || unknown+=("$package")
  done
  [[ ${#unknown[@]} -eq 0 ]] ||
    fail "apt knows no package ${unknown[*]}. Debian 12 (main) or Ubuntu 24.04 (main and universe) has them all."
  for entry in "${MINIMUM_VERSIONS[@]}"; do
    read -r name minimum <<<"$entry"
    [[ " $* " == *" $name "* ]] || continue
    candidate=$(candidate_version "$name")
    dpkg --compare-versions "$candidate" ge "$minimum" || fail "$name is $candidate here; at least $minimum is needed."
  done
}

main() {
  local packages=("${BUILD_PACKAGES[@]}") list=no
  while [[ $# -gt 0 ]]; do
    case $1 in
      --runtime) packages=("${RUNTIME_PACKAGES[@]}") ;;
      --tests)
        packages+=("${TEST_PACKAGES[@]}")
        if on_debian; then packages+=("${DEBIAN_TEST_PACKAGES[@]}"); fi ;;
      --python) packages+=("${PYTHON_PACKAGES[@]}") ;;
      --wheel) packages+=("${WHEEL_PACKAGES[@]}") ;;
      --image) packages+=("${IMAGE_PACKAGES[@]}") ;;
      --languages) if on_debian; then packages+=("${DEBIAN_LANGUAGE_PACKAGES[@]}"); fi ;;
      --tidy) packages+=(clang-tidy-14) ;;
      --list) list=yes ;;
      -h | --help) usage; return ;;
      *) usage >&2; printf 'install-deps: error: unknown option %s\n' "$1" >&2; return 2 ;;
    esac
    shift
  done
  if [[ $list == yes ]]; then printf '%s\n' "${packages[@]}"; return; fi

  check_distribution
  local missing=()
  mapfile -t missing < <(missing_packages "${packages[@]}")
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "all ${#packages[@]} packages are present."
    return
  fi
  choose_root "${missing[@]}"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  "${as_root[@]}" "${apt[@]}" update || fail "apt-get update failed (is the network or the mirror reachable?)"
  check_candidates "${packages[@]}"
  "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" || fail "apt-get install failed."
  mapfile -t missing < <(missing_packages "${packages[@]}")
  [[ ${#missing[@]} -eq 0 ]] || fail "still missing after the installation: ${missing[*]}"
  say "done."
}

main "$@"
