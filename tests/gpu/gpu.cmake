# Everything that needs a GPU, in one program: each would carry all the device code. Where no GPU works, each test says so
# and is skipped.
if(NOT TILEWIRE_HAVE_CUDA)
  return()
endif()
file(GLOB _gpu_test_sources CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_LIST_DIR}/*_test.cc ${CMAKE_CURRENT_LIST_DIR}/*_test.cu)
set(_gpu_test_deps tilewire_ladder tilewire_kernels_cuda tilewire_test_devices)
if(TILEWIRE_RPC)
  list(APPEND _gpu_test_deps tilewire_rpc)
else()
  list(FILTER _gpu_test_sources EXCLUDE REGEX "/service_[^/]*$")
endif()
tilewire_test(tilewire_gpu_tests SOURCES ${_gpu_test_sources} DEPS ${_gpu_test_deps} LABELS gpu)
