set(TILEWIRE_TRANSPOSE_SOURCES transpose/descriptor.cc transpose/published.cc transpose/problem.cc transpose/plan.cc transpose/box.cc transpose/host.cc)
set(TILEWIRE_TRANSPOSE_CUDA_SOURCES transpose/problem_cuda.cc transpose/transpose.cu
    transpose/elements_1.cu transpose/elements_2.cu transpose/elements_4.cu transpose/elements_8.cu transpose/elements_16.cu)
