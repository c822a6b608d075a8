# Every fuzz target is built twice: as a replay program that needs no libFuzzer and runs in CTest (seeds and a fixed
# number of mutations, some seconds), and, with TILEWIRE_FUZZ (clang), as the libFuzzer program fuzz_NAME.
if(TILEWIRE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TILEWIRE_FUZZ=ON needs clang (preset `fuzz`)")
  endif()
  # Coverage in every library, so that libFuzzer sees which inputs are new.
  target_compile_options(tilewire_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
  target_link_options(tilewire_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tilewire_fuzz(NAME MUTATIONS n DEPS targets... [SOURCES files...] [MUTATOR file] [CORPUS folder])
function(tilewire_fuzz name)
  cmake_parse_arguments(ARG "" "MUTATIONS;MUTATOR;CORPUS" "SOURCES;DEPS" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  if(ARG_CORPUS)
    set(corpus ${ARG_CORPUS})
  endif()
  set(sources fuzz/${name}_fuzz.cc ${ARG_SOURCES})
  add_executable(replay_${name} fuzz/replay.cc ${sources})
  target_link_libraries(replay_${name} PRIVATE ${ARG_DEPS})
  tilewire_computes(replay_${name})
  tilewire_script_test(fuzz.${name} LABELS unit TIMEOUT 300 NEEDS replay_${name}
    COMMAND replay_${name} ${corpus} ${ARG_MUTATIONS})
  if(TILEWIRE_FUZZ)
    add_executable(fuzz_${name} ${sources} ${ARG_MUTATOR})
    target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_compile_definitions(fuzz_${name} PRIVATE TILEWIRE_FUZZ_SMALL=1)
  endif()
endfunction()

tilewire_fuzz(wire_execute MUTATIONS 200000 DEPS tilewire_wire)
tilewire_fuzz(wire_unary MUTATIONS 200000 DEPS tilewire_wire)
tilewire_fuzz(shape MUTATIONS 200000 DEPS tilewire_array)
tilewire_fuzz(rmse_plan MUTATIONS 1200 DEPS tilewire_kernels)
tilewire_fuzz(transpose_plan MUTATIONS 1200 DEPS tilewire_kernels)
tilewire_fuzz(gaussian_plan MUTATIONS 1200 DEPS tilewire_kernels)
# The parser alone: it needs no gRPC, the client library around it does.
tilewire_fuzz(npy MUTATIONS 200000 SOURCES ${CMAKE_SOURCE_DIR}/client/cpp/npy.cc DEPS tilewire_array)
# It knows no gRPC, but is built only where there is a server.
if(TARGET tilewire_identity)
  tilewire_fuzz(jwt MUTATIONS 20000 DEPS tilewire_identity)
endif()

# Whole connections, with a server in the same process; its seeds are written by a script.
if(TILEWIRE_RPC)
  find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
  set(seeds ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/connection/seeds.py)
  set(corpus ${CMAKE_CURRENT_BINARY_DIR}/corpus/connection)
  add_custom_command(OUTPUT ${corpus}.written DEPENDS ${seeds} VERBATIM
    COMMAND ${Python3_EXECUTABLE} -B ${seeds} ${corpus} COMMAND ${CMAKE_COMMAND} -E touch ${corpus}.written)
  add_custom_target(connection_seeds DEPENDS ${corpus}.written)
  tilewire_fuzz(connection MUTATIONS 300 CORPUS ${corpus} DEPS tilewire_test_devices tilewire_rpc tilewire_kernels
    SOURCES fuzz/connection/client.cc fuzz/connection/records.cc fuzz/connection/servers.cc
    MUTATOR fuzz/connection/mutator.cc)
  foreach(program replay_connection fuzz_connection)
    if(TARGET ${program})
      add_dependencies(${program} connection_seeds)
    endif()
  endforeach()
endif()
