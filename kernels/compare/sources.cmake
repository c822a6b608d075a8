set(TILEWIRE_COMPARE_SOURCES compare/descriptor.cc compare/problem.cc compare/plan.cc compare/host.cc compare/host_base.cc
                             compare/golden.cc compare/published.cc)
set(TILEWIRE_COMPARE_CUDA_SOURCES compare/problem_cuda.cc compare/compare.cu compare/cuda_8_16.cu compare/cuda_32.cu
                                  compare/cuda_64.cu compare/cuda_half.cu)

# As rmse has it; none of these options changes a result.
set(_compare_tile_options $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno)
set_source_files_properties(compare/host.cc PROPERTIES COMPILE_OPTIONS "${_compare_tile_options}")
tilewire_per_isa("${_compare_tile_options}")
