# gRPC lives here only.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
# Who calls: knows neither gRPC nor sockets.
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json REQUIRED)
tilewire_library(identity SOURCES rpc/identity/base64url.cc rpc/identity/credential_files.cc rpc/identity/identity.cc rpc/identity/jwks.cc rpc/identity/jws_key.cc rpc/identity/last_token.cc
                 rpc/identity/policy.cc rpc/identity/policy_json.cc rpc/identity/rules.cc rpc/identity/strict_json.cc
                 rpc/identity/tls_files.cc rpc/identity/tokens.cc rpc/identity/verified_jwts.cc
                 DEPS tilewire_base tilewire_array OpenSSL::SSL OpenSSL::Crypto nlohmann_json::nlohmann_json)
set(rpc_conversions rpc/conversions/convert.cc rpc/conversions/operations.cc rpc/conversions/references.cc rpc/conversions/status.cc)
set(rpc_listener
    rpc/listener/account.cc rpc/listener/arrivals.cc rpc/listener/connection_use.cc rpc/listener/connections.cc rpc/listener/connections_by_peer.cc rpc/listener/left_before.cc rpc/listener/hand_overs.cc rpc/listener/limits.cc rpc/listener/listener.cc rpc/listener/looking_after.cc
    rpc/listener/memory_watch.cc rpc/listener/own_dials.cc rpc/listener/peer.cc rpc/listener/read_accounts.cc rpc/listener/read_rounds.cc rpc/listener/round_trip.cc
    rpc/listener/sockets.cc rpc/listener/tcp_facts.cc rpc/listener/unasked.cc rpc/listener/unread.cc rpc/listener/window_class.cc)
# The kernel's header and the C library's have the same names.
set_source_files_properties(rpc/listener/tcp_facts.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
set(rpc_transport
    rpc/transport/allowance.cc rpc/transport/awaited.cc rpc/transport/blocks_kept.cc rpc/transport/crew.cc rpc/transport/crew_threads.cc rpc/transport/door.cc rpc/transport/given_window.cc rpc/transport/grpc_messages.cc rpc/transport/grpc_reads.cc rpc/transport/health_service.cc
    rpc/transport/idle_watch.cc rpc/transport/messages_on_way.cc rpc/transport/queue_thread.cc rpc/transport/refused_calls.cc rpc/transport/self_probe.cc rpc/transport/shared_queue.cc rpc/transport/slices.cc rpc/transport/streams_read.cc
    rpc/transport/tls_credentials.cc rpc/transport/transport.cc rpc/transport/unfinished_headers.cc)
set(rpc_calls
    rpc/calls/arrays.cc rpc/calls/backlog.cc rpc/calls/call.cc rpc/calls/call_job.cc rpc/calls/cancellation.cc rpc/calls/describe.cc
    rpc/calls/done_rate.cc rpc/calls/excess.cc rpc/calls/execute.cc rpc/calls/feed.cc rpc/calls/known_requests.cc rpc/calls/message_watch.cc rpc/calls/metadata.cc rpc/calls/own_streams.cc rpc/calls/record.cc rpc/calls/regions.cc
    rpc/calls/passage.cc rpc/calls/running.cc rpc/calls/stream.cc rpc/calls/throttle.cc rpc/calls/turns.cc rpc/calls/unary.cc
    rpc/calls/unary_request.cc rpc/calls/unknown.cc)
tilewire_library(rpc SOURCES ${rpc_conversions} ${rpc_listener} ${rpc_transport} ${rpc_calls} rpc/drain.cc rpc/health.cc rpc/library_log.cc rpc/policy_words.cc rpc/server.cc rpc/grpc_server.cc rpc/grpc_servers.cc rpc/services.cc
                 DEPS tilewire_identity tilewire_engine tilewire_kernels tilewire_proto tilewire_wire gRPC::grpc++_reflection)
