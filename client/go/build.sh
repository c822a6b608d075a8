#!/usr/bin/env bash
# Builds the example in FOLDER, with Debian's packages alone and no network: client/go/build.sh FOLDER
set -euo pipefail
[[ $# -eq 1 ]] || { echo "Usage: client/go/build.sh FOLDER" >&2; exit 2; }
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here proto=$here/../../proto
mkdir -p "$1/src"
cd "$1"
# In $PWD/src, where imports of "tilewire/v1" are looked for; google/rpc is in golang-google-genproto-dev.
protoc -I "$proto" --go_out=src --go-grpc_out=src tilewire/v1/{types,kernels,device}.proto
export CGO_ENABLED=0 GO111MODULE=off GOPATH=$PWD:/usr/share/gocode GOCACHE=$PWD/cache GOFLAGS=-p=${JOBS:-2}
go vet "$here/example.go"
go build -o example "$here/example.go"
