# The `bundle` target: ${CMAKE_BINARY_DIR}/bundle/{bin,lib,share}, a relocatable folder with the programs and every shared
# library they need but glibc and the NVIDIA driver. It runs on any x86-64 Linux whose glibc is new enough.
#
# What goes in: tilewired and tilewire*, and, where they are built, GPU tests and benches (tilewire_gpu_*, *_bench,
# tilewire_bench*, tilewire_raw_peer) and the server of tests/chaos, so that a GPU machine without compilers can run them. Of a build
# with fuzzers these alone, which another machine with more cores can run (tests/chaos/carry.sh).
# Included last, when every target is known.

# Releases are built on Debian 12 (glibc 2.36). Built on a newer system, a bundle runs on that glibc or newer.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE _glibc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REGEX MATCH "[0-9]+\\.[0-9]+" _glibc "${_glibc}")
if(NOT _glibc VERSION_GREATER 2.36)
  set(_glibc 2.36)
endif()
set(TILEWIRE_BUNDLE_GLIBC ${_glibc} CACHE STRING "Newest glibc version that a bundled program may ask for")
# What is shipped is 72 MiB at most; tests and benches, of which each has the host's kernels, come on top where they are built.
set(_largest 72)
if(TILEWIRE_TESTS)
  set(_largest 112)
endif()
set(TILEWIRE_BUNDLE_MAX_MIB ${_largest} CACHE STRING "Largest size of the bundle in MiB")

# Puts all targets of a directory and of those below it into the variable `result`.
function(_tilewire_all_targets directory result)
  get_property(all DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(children DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(child IN LISTS children)
    _tilewire_all_targets(${child} below)
    list(APPEND all ${below})
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

_tilewire_all_targets(${CMAKE_SOURCE_DIR} _targets)
set(_bundle_names "^tilewired?$|^tilewire[-_](cli|load)$|^tilewire_gpu_|^tilewire_bench$|_bench$|^tilewire_raw_peer$|^tilewired_faulty$")
if(TILEWIRE_FUZZ)
  set(_bundle_names "^fuzz_")
endif()
set(_bundled)
foreach(_target IN LISTS _targets)
  get_target_property(_type ${_target} TYPE)
  if(_type STREQUAL "EXECUTABLE" AND _target MATCHES "${_bundle_names}")
    list(APPEND _bundled ${_target})
    # DT_RPATH rather than DT_RUNPATH: it also holds for the libraries' own libraries, and LD_LIBRARY_PATH cannot
    # replace the bundled ones. In the build folder the path does not exist and is skipped.
    set_target_properties(${_target} PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
    target_link_options(${_target} PRIVATE -Wl,--disable-new-dtags)
  endif()
endforeach()

set(_programs)
foreach(_target IN LISTS _bundled)
  list(APPEND _programs $<TARGET_FILE:${_target}>)
endforeach()
# A list cannot travel through -D unharmed; a file can.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bundle-programs.cmake CONTENT "set(PROGRAMS \"${_programs}\")\n")

add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND}
    -D BUNDLE=${CMAKE_BINARY_DIR}/bundle
    -D PROGRAMS_FILE=${CMAKE_BINARY_DIR}/bundle-programs.cmake
    -D SOURCE=${CMAKE_SOURCE_DIR}
    -D STRIP=${CMAKE_STRIP}
    -D OBJDUMP=${CMAKE_OBJDUMP}
    -D MAX_GLIBC=${TILEWIRE_BUNDLE_GLIBC}
    -D MAX_MIB=${TILEWIRE_BUNDLE_MAX_MIB}
    -P ${CMAKE_CURRENT_LIST_DIR}/MakeBundle.cmake
  DEPENDS ${_bundled}
  COMMENT "Collecting the bundle" VERBATIM)
