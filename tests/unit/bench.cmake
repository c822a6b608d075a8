tilewire_test(figures_test SOURCES unit/figures_test.cc DEPS tilewire_figures LABELS unit)
tilewire_test(bench_cores_test SOURCES unit/bench_cores_test.cc bench/cores.cc LABELS unit)
tilewire_test(bench_excess_test SOURCES unit/bench_excess_test.cc bench/excess_found.cc DEPS tilewire_figures LABELS unit)
# The kernel benchmark's own arithmetic, reports and command line. No GPU, no timing that could be noisy.
if(NOT TARGET tilewire_bench_core)
  return()
endif()
tilewire_test(tilewire_bench_tests
  SOURCES unit/bench_stopping_test.cc unit/bench_runner_test.cc unit/bench_report_test.cc unit/bench_options_test.cc
  DEPS tilewire_bench_core LABELS unit TIMEOUT 60)

# The program itself: what it prints and its exit codes.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
tilewire_script_test(kernel_bench.program LABELS script TIMEOUT 120 NEEDS tilewire_kernel_bench
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/unit/bench_program_test.py
          $<TARGET_FILE:tilewire_kernel_bench>)
tilewire_script_test(rmse.kernels LABELS script TIMEOUT 60 NEEDS tilewire_rmse_kernels
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/unit/rmse_kernels_test.py
          $<TARGET_FILE:tilewire_rmse_kernels> ${PROJECT_SOURCE_DIR}/kernels/rmse/CUDA.md)
tilewire_script_test(rmse.results LABELS script TIMEOUT 60
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/unit/rmse_results_test.py
          ${PROJECT_SOURCE_DIR}/kernels/bench/rmse_results.py)
