# Benchmarks: programs, no tests. tests/bench/README.md says what they found.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_package(CLI11 REQUIRED)
add_executable(tilewire_raw_peer ${CMAKE_CURRENT_LIST_DIR}/raw_peer.cc)
target_link_libraries(tilewire_raw_peer PRIVATE tilewire_rpc tilewire_ops)
add_executable(tilewire_bench ${CMAKE_CURRENT_LIST_DIR}/bench.cc ${CMAKE_CURRENT_LIST_DIR}/child.cc
               ${CMAKE_CURRENT_LIST_DIR}/raw_client.cc)
target_link_libraries(tilewire_bench PRIVATE tilewire_client tilewire_ops CLI11::CLI11)
add_dependencies(tilewire_bench tilewired tilewire_raw_peer)
