set(engine_sources engine/worker_pool.cc engine/cpu_device.cc engine/memory_pool.cc engine/decorators.cc engine/slow_device.cc engine/faults.cc
    engine/timer.cc engine/admission.cc engine/operation.cc engine/span_log.cc engine/lane_clock.cc engine/intake.cc
    engine/job.cc engine/job_compute.cc engine/job_copy_in.cc engine/job_output.cc engine/job_streams.cc engine/introspection.cc engine/engine.cc
    engine/engine_lanes.cc engine/engine_leases.cc engine/engine_blocks.cc engine/array_store.cc engine/array_reserve.cc engine/random_id.cc engine/region.cc engine/region_store.cc engine/region_open.cc engine/shared_memory.cc
    engine/guarded_copy.cc engine/job_store.cc engine/job_help.cc engine/submissions.cc
    engine/copy_rates.cc engine/window.cc engine/job_window.cc engine/ceilings.cc engine/engine_ceilings.cc)
if(TILEWIRE_HAVE_CUDA)
  tilewire_library(engine SOURCES ${engine_sources} engine/cuda_device.cc engine/cuda_lane.cc engine/cuda_shared.cc
                   engine/cuda_error.cc engine/cuda_launch.cc engine/cuda_kernels.cc
                   DEPS tilewire_base tilewire_kernels tilewire_kernels_cuda tilewire_ladder)
else()
  tilewire_library(engine SOURCES ${engine_sources} engine/cuda_absent.cc DEPS tilewire_base tilewire_kernels)
endif()
