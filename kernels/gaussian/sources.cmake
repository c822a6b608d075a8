set(TILEWIRE_GAUSSIAN_SOURCES gaussian/descriptor.cc gaussian/published.cc gaussian/problem.cc gaussian/plan.cc gaussian/constants.cc gaussian/host.cc gaussian/host_base.cc
    gaussian/golden.cc)
set(TILEWIRE_GAUSSIAN_CUDA_SOURCES gaussian/problem_cuda.cc gaussian/gaussian.cu)

# The same element code once per instruction set; host.cc picks one at run time. None of these options changes a
# result: fma stays where the contract puts it (-ffp-contract=off is everywhere), and neither errno nor the floating
# point exceptions' flags are read.
set(_gaussian_options $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno -fno-trapping-math)
set_source_files_properties(gaussian/host_base.cc PROPERTIES COMPILE_OPTIONS "${_gaussian_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TILEWIRE_GAUSSIAN_SOURCES gaussian/host_v3.cc gaussian/host_v4.cc)
  set_source_files_properties(gaussian/host_v3.cc PROPERTIES
    COMPILE_OPTIONS "${_gaussian_options};-march=x86-64-v3")
  set_source_files_properties(gaussian/host_v4.cc PROPERTIES
    COMPILE_OPTIONS "${_gaussian_options};-march=x86-64-v4;-mprefer-vector-width=512")
endif()
