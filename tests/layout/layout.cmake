# Rules about the source tree itself. They read files only, so they also hold for a source archive without git.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
foreach(check includes sizes links waits)
  tilewire_script_test(layout.${check} LABELS script TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/${check}.py ${CMAKE_SOURCE_DIR})
endforeach()
tilewire_script_test(layout.count LABELS script TIMEOUT 60
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/count_test.py)
tilewire_script_test(layout.rules LABELS script TIMEOUT 60
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/rules_test.py)
if(TARGET tilewired)
  tilewire_script_test(layout.thread_storage LABELS script TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/thread_storage.py $<TARGET_FILE:tilewired>)
endif()

tilewire_script_test(layout.sbom LABELS script TIMEOUT 60
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/sbom_test.py)

# Sources that this build compiles together are looked at alone, as people's builds see them. Clang's own builds (asan, tsan) look at
# what locks guard, but in sources that need CUDA.
if(TILEWIRE_HAVE_CUDA OR TILEWIRE_TOGETHER)
  tilewire_script_test(layout.thread_safety LABELS script TIMEOUT 1200
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/thread_safety.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endif()
tilewire_script_test(layout.thread_safety_rules LABELS script TIMEOUT 60
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/thread_safety_test.py)

# Every header compiles alone: those that a source includes before all else are compiled with it, the others by a source
# each that includes nothing else. Means something only without precompiled headers.
option(TILEWIRE_HEADER_CHECK "Compile every header alone" OFF)
if(NOT TILEWIRE_HEADER_CHECK)
  return()
endif()
set(folders kernels proto/wire server/base server/engine tests/devices)
if(TILEWIRE_RPC)
  list(APPEND folders server/rpc server/ops client)
endif()
set(sources)
set(first)   # headers that a source includes first
foreach(folder ${folders})
  file(GLOB_RECURSE compiled CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  foreach(source ${compiled})
    file(STRINGS ${source} include REGEX "^#include" LIMIT_COUNT 1)
    if(include MATCHES "^#include \"(.+)\"")
      list(APPEND first ${CMAKE_MATCH_1})
    endif()
  endforeach()
endforeach()
foreach(folder ${folders})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/${folder}/*.h)
  foreach(header ${headers})
    if(header IN_LIST first)
      continue()
    endif()
    if(header MATCHES "^client/python/")   # needs Python's and nanobind's, which only who builds the wheel has
      continue()
    endif()
    # Headers with CUDA types, by the names that layout/includes.py holds them to.
    if(NOT TILEWIRE_HAVE_CUDA AND header MATCHES "_cuda\\.h$|^server/engine/device/cuda/|^kernels/(ladder|bench)/")
      continue()
    endif()
    string(REPLACE "/" "_" name ${header})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
endforeach()
add_library(tilewire_header_check OBJECT ${sources})
tilewire_tests_need(script tilewire_header_check)
target_link_libraries(tilewire_header_check PRIVATE tilewire_options Threads::Threads tl::expected)
if(TILEWIRE_RPC)
  target_link_libraries(tilewire_header_check PRIVATE tilewire_proto tilewire_rpc tilewire_ops)
endif()
if(TILEWIRE_HAVE_CUDA)
  target_link_libraries(tilewire_header_check PRIVATE CUDA::cudart_static)
endif()
