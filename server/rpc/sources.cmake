# gRPC lives here only.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
tilewire_library(rpc SOURCES rpc/arrays.cc rpc/awaited.cc rpc/call.cc rpc/call_context.cc rpc/convert.cc rpc/describe.cc rpc/drain.cc rpc/execute.cc rpc/identity.cc rpc/references.cc rpc/regions.cc rpc/stream.cc rpc/idle_watch.cc rpc/self_probe.cc
                 rpc/server.cc rpc/slices.cc rpc/status.cc rpc/transport.cc rpc/unary.cc rpc/unknown.cc
                 DEPS tilewire_engine tilewire_proto tilewire_wire gRPC::grpc++_reflection)
