# The client: files without gRPC; calls and the program against a server that checks the protocol and misbehaves on
# demand.
tilewire_test(client_npy_test SOURCES unit/client_npy_test.cc unit/client_file_test.cc unit/client_pipes_test.cc DEPS tilewire_npy LABELS unit)
if(NOT TILEWIRE_RPC)
  return()
endif()
tilewire_library(client_fake SOURCES unit/client_fake_server.cc unit/client_fake_stream.cc unit/client_deaf_peer.cc
                 DEPS tilewire_proto tilewire_wire tilewire_kernels)
tilewire_precompiled(tilewire_client_fake grpc_tests)
find_package(absl REQUIRED)
tilewire_test(client_call_test
              SOURCES unit/client_call_test.cc unit/client_failure_test.cc unit/client_retry_test.cc unit/client_hold_test.cc
                      unit/client_schedule_test.cc unit/client_stripe_test.cc unit/client_gaussian_test.cc
                      unit/client_spans_test.cc unit/client_arrays_test.cc unit/client_arrays_failure_test.cc
                      unit/client_operations_test.cc
              DEPS tilewire_client tilewire_client_fake absl::synchronization LABELS unit GRPC)
find_package(nlohmann_json REQUIRED)
tilewire_test(client_report_test SOURCES unit/client_trace_test.cc unit/client_timeline_test.cc unit/client_values_test.cc
                      unit/client_timing_test.cc
              DEPS tilewire_report tilewire_load_html LABELS unit GRPC)
# The example of client/cpp/README.md.
add_executable(client_example ${CMAKE_SOURCE_DIR}/client/cpp/example.cc)
target_link_libraries(client_example PRIVATE tilewire_client)
tilewire_test(client_cli_test SOURCES unit/client_cli_test.cc unit/client_cli_usage_test.cc unit/client_cli_gaussian_test.cc
                      unit/client_cli_trace_test.cc unit/client_cli_arrays_test.cc
              DEPS tilewire_client tilewire_client_fake nlohmann_json::nlohmann_json LABELS unit GRPC)
target_compile_definitions(client_cli_test PRIVATE TILEWIRE_CLI="$<TARGET_FILE:tilewire>"
                           TILEWIRE_CLIENT_EXAMPLE="$<TARGET_FILE:client_example>")
add_dependencies(client_cli_test tilewire client_example)
