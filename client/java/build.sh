#!/usr/bin/env bash
# Builds the example in FOLDER, with Debian's packages alone and no network: client/java/build.sh FOLDER
set -euo pipefail
[[ $# -eq 1 ]] || { echo "Usage: client/java/build.sh FOLDER" >&2; exit 2; }
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here proto=$here/../../proto jars=/usr/share/java
mkdir -p "$1/stubs" "$1/classes"
cd "$1"
# google/rpc too: what Debian has of it is older than ErrorInfo. That is why our classes come first.
protoc -I "$proto" --java_out=stubs --grpc-java_out=stubs --plugin=protoc-gen-grpc-java="$(command -v grpc_java_plugin)" \
  tilewire/v1/{types,kernels,device}.proto google/rpc/{status,error_details}.proto
classpath=$PWD/classes
for jar in grpc-{api,context,core,netty,protobuf,protobuf-lite,stub} protobuf guava perfmark-api geronimo-annotation-1.3-spec \
  netty-{buffer,codec,codec-http,codec-http2,common,handler,resolver,transport}; do
  classpath+=:$jars/$jar.jar
done
find stubs -name '*.java' >sources
javac -nowarn -d classes -cp "$classpath" @sources
javac -Xlint:all -Werror -d classes -cp "$classpath" "$here/Example.java"
printf '#!/bin/sh\nexec java -cp %q Example "$@"\n' "$classpath" >example
chmod +x example
