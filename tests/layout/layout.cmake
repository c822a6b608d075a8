# Rules about the source tree itself. They read files only, so they also hold for a source archive without git.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
foreach(check includes sizes links)
  add_test(NAME layout.${check}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/${check}.py ${CMAKE_SOURCE_DIR})
  set_tests_properties(layout.${check} PROPERTIES LABELS unit TIMEOUT 60)
endforeach()
add_test(NAME layout.rules
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/rules_test.py)
set_tests_properties(layout.rules PROPERTIES LABELS unit TIMEOUT 60)

# Clang looks at what locks guard; the compiler of a build need not be one. Skipped where there is none.
if(TILEWIRE_RPC)
  add_test(NAME layout.thread_safety
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/thread_safety.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(layout.thread_safety PROPERTIES LABELS unit TIMEOUT 600 SKIP_RETURN_CODE 77)
  add_test(NAME layout.thread_safety_rules
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/layout/thread_safety_test.py)
  set_tests_properties(layout.thread_safety_rules PROPERTIES LABELS unit TIMEOUT 60 SKIP_RETURN_CODE 77)
endif()

# Every header compiles alone: one source a header that includes nothing else. Costs some seconds a gRPC header, so only
# the development preset asks for it.
option(TILEWIRE_HEADER_CHECK "Compile every header alone" OFF)
if(NOT TILEWIRE_HEADER_CHECK)
  return()
endif()
set(folders kernels proto/wire server/base server/engine)
if(TILEWIRE_RPC)
  list(APPEND folders server/rpc server/ops client)
endif()
set(sources)
foreach(folder ${folders})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/${folder}/*.h)
  foreach(header ${headers})
    # Headers with CUDA types, by the names that layout/includes.py holds them to.
    if(NOT TILEWIRE_HAVE_CUDA AND header MATCHES "_cuda\\.h$|/cuda_[a-z_]+\\.h$|^kernels/(ladder|bench)/")
      continue()
    endif()
    string(REPLACE "/" "_" name ${header})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
endforeach()
add_library(tilewire_header_check OBJECT ${sources})
target_link_libraries(tilewire_header_check PRIVATE tilewire_options Threads::Threads tl::expected)
if(TILEWIRE_RPC)
  target_link_libraries(tilewire_header_check PRIVATE tilewire_proto tilewire_rpc tilewire_ops)
endif()
if(TILEWIRE_HAVE_CUDA)
  target_link_libraries(tilewire_header_check PRIVATE CUDA::cudart_static)
endif()
