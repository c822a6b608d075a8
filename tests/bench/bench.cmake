# Benchmarks: programs, no tests. tests/bench/README.md says what they found.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
add_executable(tilewire_engine_bench ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cc ${CMAKE_CURRENT_LIST_DIR}/copies.cc)
target_link_libraries(tilewire_engine_bench PRIVATE tilewire_engine tilewire_kernels CLI11::CLI11 nlohmann_json::nlohmann_json)
# At a size that measures nothing: that it runs, and that what it writes can be read.
tilewire_script_test(bench.engine LABELS script TIMEOUT 120 NEEDS tilewire_engine_bench
  COMMAND tilewire_engine_bench --device cpu --mib 8 --block-kib 256 --rounds 1 --json engine_bench.json)
set_tests_properties(bench.engine PROPERTIES PASS_REGULAR_EXPRESSION "transpose_batched +[0-9]")
if(NOT TILEWIRE_RPC)
  return()
endif()
add_executable(tilewire_raw_peer ${CMAKE_CURRENT_LIST_DIR}/raw_peer.cc ${CMAKE_CURRENT_LIST_DIR}/callback_sink.cc)
target_link_libraries(tilewire_raw_peer PRIVATE tilewire_rpc tilewire_ops)
set(bench_sources main bench report child raw_client wire small mixed callers access distance relay overload fair excess excess_found doors cores open_loop http2_frames actives crowd)
list(TRANSFORM bench_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM bench_sources APPEND .cc)
add_executable(tilewire_bench ${bench_sources})
target_link_libraries(tilewire_bench PRIVATE tilewire_client tilewire_kernels tilewire_figures tilewire_ops tilewire_identity CLI11::CLI11
                                             nlohmann_json::nlohmann_json)
add_dependencies(tilewire_bench tilewired tilewire_raw_peer)
# At a size that measures nothing, too.
tilewire_script_test(bench.doors LABELS script TIMEOUT 120 NEEDS tilewire_bench
  COMMAND tilewire_bench --device cpu doors --callers 2 --calls 4 --turns 1 --rounds 2)
set_tests_properties(bench.doors PROPERTIES PASS_REGULAR_EXPRESSION "all on +[0-9]")
# Nothing of ours but the contract: its figures are held against those of tilewire-load.
add_executable(tilewire_independent_bench ${CMAKE_CURRENT_LIST_DIR}/independent.cc)
target_link_libraries(tilewire_independent_bench PRIVATE tilewire_proto CLI11::CLI11 nlohmann_json::nlohmann_json)
