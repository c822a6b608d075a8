set(TILEWIRE_GAUSSIAN_SOURCES gaussian/descriptor.cc gaussian/published.cc gaussian/problem.cc gaussian/plan.cc gaussian/constants.cc gaussian/host.cc gaussian/host_base.cc
    gaussian/golden.cc)
set(TILEWIRE_GAUSSIAN_CUDA_SOURCES gaussian/problem_cuda.cc gaussian/gaussian.cu)

# None of these options changes a result: fma stays where the contract puts it (-ffp-contract=off is everywhere), and
# neither errno nor the floating point exceptions' flags are read.
tilewire_per_isa("$<$<NOT:$<CONFIG:Debug>>:-O3>;-fno-math-errno;-fno-trapping-math")
