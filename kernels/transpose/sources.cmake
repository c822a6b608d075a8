set(TILEWIRE_TRANSPOSE_SOURCES transpose/plan.cc transpose/box.cc transpose/host.cc)
set(TILEWIRE_TRANSPOSE_CUDA_SOURCES transpose/transpose.cu)
