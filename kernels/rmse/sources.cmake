set(TILEWIRE_RMSE_SOURCES rmse/descriptor.cc rmse/published.cc rmse/problem.cc rmse/plan.cc rmse/parts.cc rmse/host.cc rmse/host_base.cc rmse/golden.cc
    rmse/choice.cc rmse/shapes.cc rmse/choose_contiguous.cc rmse/choose_columns.cc rmse/choose_walk.cc)
set(TILEWIRE_RMSE_CUDA_SOURCES rmse/problem_cuda.cc rmse/rmse.cu rmse/tiles.cu rmse/groups.cu rmse/staged.cu rmse/ring.cu
    rmse/stream.cu rmse/walk.cu)

# None of these options changes a result: fma stays where the contract puts it (-ffp-contract=off is everywhere), and
# errno is not read.
set(_rmse_tile_options $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno)
set_source_files_properties(rmse/host.cc PROPERTIES COMPILE_OPTIONS "${_rmse_tile_options}")
tilewire_per_isa("${_rmse_tile_options}")
