# Benchmarks: programs, no tests. tests/bench/README.md says what they found.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
add_executable(tilewire_engine_bench ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cc ${CMAKE_CURRENT_LIST_DIR}/copies.cc)
target_link_libraries(tilewire_engine_bench PRIVATE tilewire_engine CLI11::CLI11 nlohmann_json::nlohmann_json)
# At a size that measures nothing: that it runs, and that what it writes can be read.
add_test(NAME bench.engine COMMAND tilewire_engine_bench --device cpu --mib 8 --block-kib 256 --rounds 1 --json engine_bench.json)
set_tests_properties(bench.engine PROPERTIES LABELS integration PASS_REGULAR_EXPRESSION "transpose_batched +[0-9]" TIMEOUT 120)
if(NOT TILEWIRE_RPC)
  return()
endif()
add_executable(tilewire_raw_peer ${CMAKE_CURRENT_LIST_DIR}/raw_peer.cc)
target_link_libraries(tilewire_raw_peer PRIVATE tilewire_rpc tilewire_ops)
add_executable(tilewire_bench ${CMAKE_CURRENT_LIST_DIR}/bench.cc ${CMAKE_CURRENT_LIST_DIR}/child.cc
               ${CMAKE_CURRENT_LIST_DIR}/raw_client.cc)
target_link_libraries(tilewire_bench PRIVATE tilewire_client tilewire_ops CLI11::CLI11)
add_dependencies(tilewire_bench tilewired tilewire_raw_peer)
