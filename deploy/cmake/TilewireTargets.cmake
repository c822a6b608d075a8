# Compile options, dependencies and the functions that declare Tilewire's targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
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
  target_compile_options(tilewire_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
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
  list(APPEND _san -g1)   # lines for the reports; all of -g takes a quarter more of the compiler's time
  target_compile_options(tilewire_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_san}>")
  target_link_options(tilewire_options INTERFACE ${_san})
endif()

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
link_libraries(tilewire_options)

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

# tilewire_test(NAME SOURCES... DEPS... LABELS... TIMEOUT s): a GoogleTest program, one CTest entry a test case.
# Labels: unit, integration, gpu, tsan (may run under ThreadSanitizer).
function(tilewire_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    TEST_LIST ${name}_list
    PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  # gtest_discover_tests() flattens lists, so a second label would become a property's name: CTest sets labels itself,
  # right after it has read the discovered tests.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(WRITE ${labels_file}
    "if(${name}_list)\n  set_tests_properties(\${${name}_list} PROPERTIES LABELS \"${ARG_LABELS}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()
