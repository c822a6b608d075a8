set(TILEWIRE_COMPARE_SOURCES compare/descriptor.cc compare/problem.cc compare/plan.cc compare/host.cc compare/host_base.cc
                             compare/golden.cc compare/published.cc)
set(TILEWIRE_COMPARE_CUDA_SOURCES compare/problem_cuda.cc compare/compare.cu compare/cuda_8_16.cu compare/cuda_32.cu
                                  compare/cuda_64.cu compare/cuda_half.cu)

# The same tile code once per instruction set, as rmse has it; none of these options changes a result.
set(_compare_tile_options $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno)
set_source_files_properties(compare/host.cc compare/host_base.cc PROPERTIES COMPILE_OPTIONS "${_compare_tile_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TILEWIRE_COMPARE_SOURCES compare/host_v3.cc compare/host_v4.cc)
  set_source_files_properties(compare/host_v3.cc PROPERTIES
    COMPILE_OPTIONS "${_compare_tile_options};-march=x86-64-v3")
  set_source_files_properties(compare/host_v4.cc PROPERTIES
    COMPILE_OPTIONS "${_compare_tile_options};-march=x86-64-v4;-mprefer-vector-width=512")
endif()
