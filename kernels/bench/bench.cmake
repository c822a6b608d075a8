# tilewire_kernel_bench: kernels beside plain copies, the ladder, CUB and cuBLAS. Without CUDA only the host groups.
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
if(NOT CLI11_FOUND OR NOT nlohmann_json_FOUND)
  message(STATUS "Tilewire: no kernel benchmarks (they need CLI11 and nlohmann-json)")
  return()
endif()

# Everything that runs without a GPU, so that unit tests can link it.
set(_bench_core layouts.cc record.cc runner.cc stopping.cc options.cc report_table.cc report_json.cc report_csv.cc svg.cc meter_host.cc)
list(TRANSFORM _bench_core PREPEND bench/)
if(TILEWIRE_HAVE_CUDA)
  list(APPEND _bench_core bench/ranges_nvtx.cc)
else()
  list(APPEND _bench_core bench/ranges_none.cc)
endif()
tilewire_library(bench_core SOURCES ${_bench_core} DEPS tilewire_array tilewire_figures CLI11::CLI11 nlohmann_json::nlohmann_json)
tilewire_together(tilewire_bench_core)
target_compile_definitions(tilewire_bench_core PUBLIC TILEWIRE_VERSION="${PROJECT_VERSION}")
if(TILEWIRE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")   # sees uninitialised members in its own <regex>
  target_compile_options(tilewire_bench_core PUBLIC -Wno-maybe-uninitialized)
endif()
if(TILEWIRE_HAVE_CUDA)   # NVTX is headers and dlopen()
  target_include_directories(tilewire_bench_core SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(tilewire_bench_core PUBLIC ${CMAKE_DL_LIBS})
endif()

# Writes the list of kernels in kernels/rmse/CUDA.md.
add_executable(tilewire_rmse_kernels bench/rmse_kernels.cc)
target_link_libraries(tilewire_rmse_kernels PRIVATE tilewire_bench_core tilewire_kernels)

file(GLOB _bench_host CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/host_*.cc)
add_executable(tilewire_kernel_bench bench/main.cc bench/registry.cc ${_bench_host})
target_link_libraries(tilewire_kernel_bench PRIVATE tilewire_bench_core tilewire_kernels)
tilewire_together(tilewire_kernel_bench)
tilewire_tell_cuda(bench/registry.cc)
if(NOT TILEWIRE_HAVE_CUDA)
  target_sources(tilewire_kernel_bench PRIVATE bench/meter_absent.cc)
  return()
endif()

# CUB is header-only, cuBLAS is loaded at run time: neither is linked.
set(_bench_cuda meter_device.cc device.cc data.cu parallel.cc rmse_data.cc move_work.cc geam.cc cub_reduce.cu cases_copies.cc
                cases_rmse.cc cases_batched.cc cases_layouts.cc cases_compare.cc cases_transpose.cc cases_permute.cc cases_gaussian.cc cases_ladder.cc)
list(TRANSFORM _bench_cuda PREPEND bench/)
target_sources(tilewire_kernel_bench PRIVATE ${_bench_cuda})
target_link_libraries(tilewire_kernel_bench PRIVATE tilewire_ladder tilewire_kernels_cuda ${CMAKE_DL_LIBS})
