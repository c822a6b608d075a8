#!/usr/bin/env bash
# Makes a container image from the bundle: its programs and libraries, the C library of this machine, CA certificates and
# a user, and nothing else (no shell). The same bundle on the same machine gives the same digest. Needs buildah, but no
# registry, no daemon and no image store of its own: the work is done in a temporary folder.
set -euo pipefail

SOURCE=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
readonly SOURCE
readonly PREFIX=/opt/tilewire   # where the bundle lies in the image
readonly USER_ID=65532          # a number, so that Kubernetes can verify runAsNonRoot
readonly MAX_BYTES=90000000
readonly CERTIFICATES=/etc/ssl/certs/ca-certificates.crt

usage() {
  cat <<'TEXT'
Usage: deploy/image.sh [--bundle DIR] [--output FILE] [--tag NAME]
  --bundle DIR   made by `cmake --build BUILD --target bundle` (default: build/release/bundle)
  --output FILE  the image as an OCI archive (default: tilewire-image.tar beside the bundle); its bill of materials is beside it
  --tag NAME     the image's name in the archive (default: localhost/tilewire:VERSION)
The image's date is SOURCE_DATE_EPOCH, or else that of the newest commit. Then: podman load -i FILE
TEXT
}

fail() { printf 'image: error: %s\n' "$*" >&2; exit 1; }

work=""
# Without root, what buildah stored belongs to users that only it can become.
clean_up() { [[ -z $work ]] || rm -rf "$work" 2>/dev/null || buildah unshare rm -rf "$work"; }

check_tools() {
  command -v buildah >/dev/null || fail "buildah is not installed (deploy/install-deps.sh --image does it)."
  [[ -r $CERTIFICATES ]] || fail "no CA certificates in $CERTIFICATES (package ca-certificates)."
}

check_bundle() {
  local program
  [[ -d $1 ]] || fail "there is no bundle in $1. Make it (cmake --build BUILD --target bundle) or name it (--bundle DIR)."
  for program in tilewired tilewire; do
    [[ -x $1/bin/$program ]] || fail "$1 is no bundle: it has no program bin/$program."
  done
}

# Seconds since 1970 that everything in the image is dated with.
choose_date() {
  local seconds=${SOURCE_DATE_EPOCH:-$(git -C "$SOURCE" log -1 --format=%ct 2>/dev/null || echo 0)}
  [[ $seconds =~ ^[0-9]+$ ]] || fail "SOURCE_DATE_EPOCH is '$seconds'; it must be seconds since 1970."
  echo "$seconds"
}

# Parts of the C library that the NVIDIA driver's libraries link to, whether our programs do or not.
readonly DRIVER_NEEDS=(libc.so.6 libdl.so.2 libm.so.6 libpthread.so.0 librt.so.1)

# Copies the programs and whatever the loader finds for them: libraries of the bundle below PREFIX, those of the system
# (the C library alone: the bundle target sees to that) and the loader where this system has them.
copy_programs() {
  local bundle=$1 root=$2 program programs=() name path link
  for program in tilewired tilewire tilewire-load; do
    [[ ! -e $bundle/bin/$program ]] || programs+=("$bundle/bin/$program")
  done
  install -d -m 755 "$root$PREFIX/bin" "$root$PREFIX/lib"
  install -m 755 "${programs[@]}" "$root$PREFIX/bin"
  for program in "${programs[@]}"; do
    env -u LD_LIBRARY_PATH -u LD_PRELOAD ldd "$program" || fail "the loader cannot read $program (above)."
  done >"$work/libraries"
  if grep 'not found' "$work/libraries" >&2; then fail "this machine cannot run the bundle: it lacks the above."; fi
  # "NAME => PATH (ADDRESS)" or, for the loader, "PATH (ADDRESS)".
  sed -nE 's/^[[:space:]]*([^ ]+ => )?(\/.+) \(0x[0-9a-f]+\)$/\2/p' "$work/libraries" >"$work/paths"
  path=$(grep -m 1 '/libc\.so\.6$' "$work/paths") || fail "the programs of $bundle do not use glibc."
  printf "${path%/*}/%s\n" "${DRIVER_NEEDS[@]}" >>"$work/paths"
  while read -r path; do
    name=${path##*/}
    if [[ $path == "$bundle"/* ]]; then install -m 755 "$path" "$root$PREFIX/lib/$name"
    else install -D -m 755 "$path" "$root$(realpath "${path%/*}")/$name"; fi
  done < <(sort -u "$work/paths")
  for link in lib lib64; do
    [[ ! -L /$link ]] || ln -s "usr/$link" "$root/$link"
  done
}

# The user, the certificates, what tells scanners and the NVIDIA container runtime whose C library this is (the latter
# puts the driver where Debian's loader looks only if there is a debian_version), and the licences.
copy_system_files() {
  local bundle=$1 root=$2 file package
  install -d -m 755 "$root/etc" "$root$PREFIX/share/licenses"
  install -d -m 1777 "$root/tmp"
  printf 'root:x:0:0:root:/:/none\ntilewire:x:%d:%d:Tilewire:/:/none\n' "$USER_ID" "$USER_ID" >"$root/etc/passwd"
  printf 'root:x:0:\ntilewire:x:%d:\n' "$USER_ID" >"$root/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
  chmod 644 "$root"/etc/*
  install -D -m 644 "$CERTIFICATES" "$root$CERTIFICATES"
  for file in debian_version os-release; do
    [[ ! -e /etc/$file ]] || install -m 644 "/etc/$file" "$root/etc/$file"
  done
  install -m 644 "$bundle"/share/licenses/* "$root$PREFIX/share/licenses"
  for package in libc6 ca-certificates; do
    file=/usr/share/doc/$package/copyright
    [[ ! -e $file ]] || install -m 644 "$file" "$root$PREFIX/share/licenses/$package.txt"
  done
}

check_size() {
  bytes=$(find "$1" -type f -printf '%s\n' | awk '{n += $1} END {print n}')
  ((bytes <= MAX_BYTES)) || fail "the image has $bytes bytes; allowed: $MAX_BYTES."
}

# store COMMAND...: buildah with a store of this run alone. vfs needs nothing of the kernel.
store() { buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }

# Turns the folder $work/root into an OCI layout in $work/oci.
commit() {
  local name=$1 version=$2 seconds=$3 cuda=$4 container
  container=$(store from scratch)
  store copy --quiet --chown 0:0 "$container" "$work/root" / >/dev/null
  store config --os linux --arch amd64 --user "$USER_ID:$USER_ID" --workingdir / --port 50051/tcp --stop-signal SIGTERM \
    --env "PATH=$PREFIX/bin" --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    --entrypoint "[\"$PREFIX/bin/tilewired\"]" --cmd '--listen 0.0.0.0:50051 --health-listen localhost:50052' --created-by deploy/image.sh \
    --label org.opencontainers.image.title=Tilewire \
    --label "org.opencontainers.image.description=GPU array kernels over gRPC (CUDA: $cuda)" \
    --label "org.opencontainers.image.version=$version" \
    --label org.opencontainers.image.licenses=Apache-2.0 "$container"
  store commit --quiet --format oci --timestamp "$seconds" "$container" "$name" >"$work/id"
  store push --quiet --digestfile "$work/digest" "$(<"$work/id")" "oci:$work/oci:$name"
}

# Of the programs and libraries in the image, and of what it has of this system.
write_sbom() {
  if ! command -v python3 >/dev/null || ! command -v dpkg-query >/dev/null; then
    printf 'image: no bill of materials: it needs python3 and dpkg-query\n' >&2
    return
  fi
  SOURCE_DATE_EPOCH=$3 python3 -B "$SOURCE/deploy/sbom.py" "$1$PREFIX" --output "$2" --also libc6 --also ca-certificates
}

main() {
  local bundle=$SOURCE/build/release/bundle output="" name="" seconds version cuda bytes
  while [[ $# -gt 0 ]]; do
    case $1 in
      --bundle | --output | --tag) [[ -n ${2:-} ]] || fail "$1 needs a value." ;;&
      --bundle) bundle=$2; shift ;;
      --output) output=$2; shift ;;
      --tag) name=$2; shift ;;
      -h | --help) usage; return ;;
      *) usage >&2; printf 'image: error: unknown option %s\n' "$1" >&2; return 2 ;;
    esac
    shift
  done
  check_tools
  check_bundle "$bundle"
  seconds=$(choose_date)
  bundle=$(realpath "$bundle")
  output=$(realpath -m "${output:-$bundle/../tilewire-image.tar}")
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  work=$(mktemp -d "${TMPDIR:-/tmp}/tilewire-image.XXXXXX")
  "$bundle/bin/tilewired" --version >"$work/version" || fail "$bundle/bin/tilewired does not run on this machine."
  version=$(sed -n 's/^tilewired //p' "$work/version")
  cuda=$(sed -n 's/^CUDA: //p' "$work/version")

  copy_programs "$bundle" "$work/root"
  copy_system_files "$bundle" "$work/root"
  check_size "$work/root"
  commit "${name:-localhost/tilewire:$version}" "$version" "$seconds" "$cuda"
  # Not oci-archive: buildah writes the present time into it.
  tar --create --file "$work/image.tar" --directory "$work/oci" --sort=name --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --mtime="@$seconds" .
  mkdir -p "${output%/*}"
  mv "$work/image.tar" "$output"
  write_sbom "$work/root" "${output%.tar}.spdx.json" "$seconds"
  printf 'image: %s\nname: %s\ndigest: %s\nsize: %d bytes unpacked (allowed: %d), %d in the archive\n' "$output" \
    "${name:-localhost/tilewire:$version}" "$(<"$work/digest")" "$bytes" "$MAX_BYTES" "$(stat -c %s "$output")"
}

main "$@"
