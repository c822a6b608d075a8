# Compile options, dependencies and the functions that declare Tilewire's targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
option(TILEWIRE_PCH "Precompile what tests and gRPC code include most. Hides missing includes, so not for every build" OFF)
if(NOT TILEWIRE_PCH)   # a precompiled header fits one kind of code only, programs or libraries
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(TILEWIRE_CCACHE ccache)
if(TILEWIRE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TILEWIRE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TILEWIRE_CCACHE})
endif()

# --- CUDA, where there is one ------------------------------------------------------------------
set(TILEWIRE_HAVE_CUDA OFF)
if(NOT TILEWIRE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  find_program(TILEWIRE_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
  if(TILEWIRE_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${TILEWIRE_NVCC})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES all-major)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)   # CMake 3.25 does not know that nvcc 12 has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(TILEWIRE_HAVE_CUDA ON)
  elseif(TILEWIRE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TILEWIRE_CUDA=ON, but no nvcc was found (set CUDACXX or put nvcc on PATH)")
  endif()
endif()
message(STATUS "Tilewire: CUDA device ${TILEWIRE_HAVE_CUDA}")

# --- options of every target -------------------------------------------------------------------
add_library(tilewire_options INTERFACE)
target_include_directories(tilewire_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# No contraction: the numeric contract says where an fma is, and nowhere else may the compiler put one.
target_compile_options(tilewire_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wno-missing-field-initializers;-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Wno-deprecated-gpu-targets;-Xcompiler=-Wall,-ffp-contract=off>)
# Where the sources lie is in no release: two checkouts build the same programs.
set(_source_map -fmacro-prefix-map=${CMAKE_SOURCE_DIR}=.)
target_compile_options(tilewire_options INTERFACE
  $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${_source_map}>
  $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CUDA>>:-Xcompiler=${_source_map}>)
# A fifth of the size of the default. CUDA 13 and the drivers it needs can read it.
if(TILEWIRE_HAVE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(tilewire_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(tilewire_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety;-Wthread-safety-beta;-Werror=thread-safety;-Werror=thread-safety-beta>)
  if(TILEWIRE_PCH)   # for compiler caches: the same content is the same header
    target_compile_options(tilewire_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Xclang;-fno-pch-timestamp>)
  endif()
endif()
# A linker that takes a tenth of the time, where there is one; what is released is linked as everybody links.
find_program(TILEWIRE_MOLD mold)
if(TILEWIRE_MOLD)
  target_link_options(tilewire_options INTERFACE $<$<NOT:$<CONFIG:Release>>:-fuse-ld=mold>)
endif()
# GCC 12 sees overlapping copies in every `"text" + std::string` that it inlines at -O3 (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tilewire_options INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict>)
endif()
if(TILEWIRE_SANITIZE STREQUAL "address")
  set(_san -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TILEWIRE_SANITIZE STREQUAL "thread")
  set(_san -fsanitize=thread -fno-omit-frame-pointer)
endif()
if(TILEWIRE_SANITIZE)
  # With it an index past a vector's end stops at that line; sanitizers see only what comes of it.
  target_compile_definitions(tilewire_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_compile_options(tilewire_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_san}>")
  target_link_options(tilewire_options INTERFACE ${_san})
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
link_libraries(tilewire_options)

set(TILEWIRE_STD_HEADERS algorithm array atomic chrono cmath condition_variable cstdint cstring filesystem fstream functional
    future limits map memory mutex optional random set span sstream string string_view thread utility variant vector
    tl/expected.hpp)
set(TILEWIRE_GRPC_HEADERS grpcpp/grpcpp.h google/rpc/error_details.pb.h google/rpc/status.pb.h
    tilewire/v1/arrays.grpc.pb.h tilewire/v1/device.grpc.pb.h tilewire/v1/kernels.grpc.pb.h tilewire/v1/regions.grpc.pb.h)
list(TRANSFORM TILEWIRE_STD_HEADERS REPLACE "(.+)" "<\\1>")
list(TRANSFORM TILEWIRE_GRPC_HEADERS REPLACE "(.+)" "<\\1>")

# tilewire_precompile(NAME DEPS targets... HEADERS headers...): headers that tilewire_precompiled(TARGET NAME) then uses.
# Both belong into one folder of the build, because all compile options must be the same.
function(tilewire_precompile name)
  cmake_parse_arguments(ARG "" "" "DEPS;HEADERS" ${ARGN})
  if(NOT TILEWIRE_PCH)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/pch_${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Only its precompiled header is wanted.\n")
  add_library(tilewire_pch_${name} OBJECT ${source})
  target_link_libraries(tilewire_pch_${name} PRIVATE tilewire_options Threads::Threads tl::expected ${ARG_DEPS})
  target_precompile_headers(tilewire_pch_${name} PRIVATE ${ARG_HEADERS})
endfunction()

function(tilewire_precompiled target name)
  if(TILEWIRE_PCH)
    target_precompile_headers(${target} REUSE_FROM tilewire_pch_${name})
  endif()
endfunction()

# For the few sources that differ with it; everything else compiles the same either way.
function(tilewire_tell_cuda)
  if(TILEWIRE_HAVE_CUDA)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS TILEWIRE_HAVE_CUDA=1)
  endif()
endfunction()

# tilewire_library(NAME SOURCES... [DEPS targets...]): a static library named tilewire_NAME.
function(tilewire_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(tilewire_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(tilewire_${name} PUBLIC tilewire_options Threads::Threads tl::expected ${ARG_DEPS})
endfunction()

# The builds of CI compile several sources of these targets as one: reading gRPC's headers with GCC, and instantiating the same
# templates for sanitizers, takes most of the time (a clash of names between two sources shows there, as a redefinition). The
# builds that people work in and release compile each source alone.
function(tilewire_together)
  if(TILEWIRE_TOGETHER)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")   # it takes the included sources for headers: their coroutines have local types
      foreach(target ${ARGN})
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
      endforeach()
    endif()
  endif()
endfunction()

# Sanitizer builds are not optimised: most code has little to compute and much to instrument, and compiles in half the
# time. These targets compute so much that it pays (and may not use precompiled headers then).
function(tilewire_computes)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TILEWIRE_SANITIZE}>>:-O1>)
  endforeach()
endfunction()

# tests_LABEL builds the programs of all tests of that label.
function(tilewire_tests_need labels)
  foreach(label IN LISTS labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    if(ARGN)
      add_dependencies(tests_${label} ${ARGN})
    endif()
  endforeach()
endfunction()

# tilewire_test(NAME SOURCES... DEPS... LABELS... [TIMEOUT s] [ALONE regex] [GRPC | COMPUTES]): a GoogleTest program, one CTest
# entry a suite. Labels: tests/README.md. Suites that ALONE matches run while no other test does: they need a quiet
# machine. GRPC: its sources include gRPC. COMPUTES: they compute so much that they are optimised in every build.
function(tilewire_test name)
  cmake_parse_arguments(ARG "GRPC;COMPUTES" "TIMEOUT;ALONE" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(ARG_COMPUTES)
    tilewire_computes(${name})
  elseif(ARG_GRPC)
    tilewire_precompiled(${name} grpc_tests)
  else()
    tilewire_precompiled(${name} tests)
  endif()
  tilewire_together(${name})
  tilewire_tests_need("${ARG_LABELS}" ${name})
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(GENERATE OUTPUT ${suites} CONTENT "set(PROGRAM \"$<TARGET_FILE:${name}>\")
set(NAME ${name})
set(LABELS \"${ARG_LABELS}\")
set(TIMEOUT ${ARG_TIMEOUT})
set(ALONE \"${ARG_ALONE}\")
set(REPORTS \"${CMAKE_BINARY_DIR}/reports\")
include(\"${CMAKE_SOURCE_DIR}/deploy/cmake/DiscoverSuites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
endfunction()

# tilewire_script_test(NAME LABELS... [TIMEOUT s] [ALONE] NEEDS targets... COMMAND...): a test that is no GoogleTest program.
# Exit code 77 says that it was skipped.
function(tilewire_script_test name)
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "LABELS;NEEDS;COMMAND" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  if(ARG_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  tilewire_tests_need("${ARG_LABELS}" ${ARG_NEEDS})
endfunction()
