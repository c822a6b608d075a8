if(NOT TILEWIRE_HAVE_CUDA)
  return()
endif()
tilewire_test(tilewire_gpu_engine_tests SOURCES gpu/engine_cuda_test.cc DEPS tilewire_engine LABELS gpu)
