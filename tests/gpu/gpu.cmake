# The CUDA kernels against the host's. Where no GPU works, each test says so and is skipped.
if(NOT TILEWIRE_HAVE_CUDA)
  return()
endif()
file(GLOB _gpu_test_sources CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_LIST_DIR}/*_cuda_test.cc ${CMAKE_CURRENT_LIST_DIR}/*_cuda_test.cu)
# The engine's own program links more (engine.cmake).
list(FILTER _gpu_test_sources EXCLUDE REGEX "/engine_[^/]*$")
tilewire_test(tilewire_gpu_kernel_tests SOURCES ${_gpu_test_sources} DEPS tilewire_ladder tilewire_kernels_cuda
              LABELS gpu)
