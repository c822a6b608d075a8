# A block a folder, lowest first: tests/layout/includes.py says which may include which.
set(engine_device
    engine/device/memory_pool.cc engine/device/shared_memory.cc
    engine/device/cpu/cpu_device.cc engine/device/cpu/guarded_copy.cc engine/device/cpu/worker_pool.cc
    engine/device/cuda/lane_clock.cc)   # no CUDA in it: every build has it and tests it
if(TILEWIRE_HAVE_CUDA)
  list(APPEND engine_device
    engine/device/cuda/cuda_device.cc engine/device/cuda/cuda_error.cc engine/device/cuda/cuda_kernels.cc
    engine/device/cuda/cuda_lane.cc engine/device/cuda/cuda_launch.cc engine/device/cuda/cuda_shared.cc)
  set(engine_cuda tilewire_kernels_cuda tilewire_ladder)
else()
  list(APPEND engine_device engine/device/cuda/cuda_absent.cc)
  set(engine_cuda)
endif()
set(engine_operation engine/operation/introspection.cc engine/operation/operation.cc)
set(engine_admission engine/admission/admission.cc engine/admission/engine_leases.cc)
set(engine_measure engine/measure/ceilings.cc engine/measure/copy_rates.cc engine/measure/engine_ceilings.cc)
set(engine_stores
    engine/stores/array_reserve.cc engine/stores/array_store.cc engine/stores/random_id.cc
    engine/stores/region.cc engine/stores/region_open.cc engine/stores/region_store.cc)
set(engine_job
    engine/job/engine_blocks.cc engine/job/intake.cc engine/job/job.cc engine/job/job_compute.cc
    engine/job/job_copy_in.cc engine/job/job_help.cc engine/job/job_output.cc engine/job/job_store.cc
    engine/job/job_streams.cc engine/job/job_window.cc engine/job/span_log.cc engine/job/submissions.cc
    engine/job/window.cc)
tilewire_library(engine
  SOURCES ${engine_device} ${engine_operation} ${engine_admission} ${engine_measure} ${engine_stores} ${engine_job}
          engine/engine.cc engine/engine_lanes.cc
  DEPS tilewire_base tilewire_kernels ${engine_cuda})
