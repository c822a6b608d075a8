# The teaching ladder: one small file a step. Only where there is CUDA.
if(NOT TILEWIRE_HAVE_CUDA)
  return()
endif()
tilewire_library(ladder
  SOURCES ladder/steps.cc ladder/finish.cu ladder/rmse_1_atomic.cu ladder/rmse_2_thread_sums.cu
          ladder/rmse_3_tree_divergent.cu ladder/rmse_3a_block_sums.cu ladder/rmse_3b_tree_conflicts.cu
          ladder/rmse_4_tree_sequential.cu ladder/rmse_5_warp_shuffles.cu
          ladder/rmse_6_vector_loads.cu ladder/rmse_6a_register_limit.cu
          ladder/rmse_6b_fast_math.cu ladder/rmse_6c_index_32.cu ladder/rmse_6d_double_sums.cu ladder/rmse_7_ours.cu
          ladder/batched_1_block_a_batch.cu ladder/batched_2_blocks_a_batch.cu ladder/batched_3_adjacent.cu
          ladder/batched_4_ours.cu ladder/copy_1_naive.cu ladder/copy_4_several.cu ladder/copy_5_vectors.cu
          ladder/transpose_1_naive.cu ladder/transpose_4_shared.cu ladder/transpose_6_several.cu
          ladder/transpose_7b_swizzled.cu ladder/matrix_ours.cu
  DEPS tilewire_kernels_cuda CUDA::cudart_static)
# The lesson of step 6b, and of nothing else. (-fmad=false, given to all, stays in force beside it.)
set_property(SOURCE ladder/rmse_6b_fast_math.cu APPEND PROPERTY COMPILE_OPTIONS -use_fast_math)
