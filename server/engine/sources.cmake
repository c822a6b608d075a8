# A block a folder, lowest first: tests/layout/includes.py says which may include which.
set(engine_device
    engine/device/memory_pool.cc engine/device/shared_memory.cc
    engine/device/cpu/device.cc engine/device/cpu/guarded_copy.cc engine/device/cpu/worker_pool.cc
    engine/device/cuda/lane_clock.cc)   # no CUDA in it: every build has it and tests it
if(TILEWIRE_HAVE_CUDA)
  list(APPEND engine_device
    engine/device/cuda/device.cc engine/device/cuda/error.cc engine/device/cuda/kernels.cc
    engine/device/cuda/lane.cc engine/device/cuda/shared.cc)
  set(engine_cuda tilewire_kernels_cuda tilewire_ladder)
else()
  list(APPEND engine_device engine/device/cuda/absent.cc)
  set(engine_cuda)
endif()
set(engine_operation engine/operation/introspection.cc engine/operation/pass.cc)
set(engine_admission
    engine/admission/admission.cc engine/admission/fair_queue.cc engine/admission/landing.cc engine/admission/leaser.cc
    engine/admission/memory_plan.cc engine/admission/orders.cc engine/admission/owner_bounds.cc engine/admission/planner.cc engine/admission/rate_limits.cc engine/admission/shares.cc
    engine/admission/ticket.cc engine/admission/waiting.cc engine/admission/waiting_room.cc)
set(engine_measure engine/measure/ceilings.cc engine/measure/copy_rates.cc engine/measure/leased_ceilings.cc)
set(engine_stores
    engine/stores/array_store.cc engine/stores/owned.cc engine/stores/random_id.cc engine/stores/region.cc
    engine/stores/region_count.cc engine/stores/region_open.cc engine/stores/region_store.cc)
set(engine_job
    engine/job/begin.cc engine/job/block_size.cc engine/job/compute.cc engine/job/copy_in.cc engine/job/copy_out.cc engine/job/help.cc
    engine/job/input_blocks.cc engine/job/intake.cc
    engine/job/job.cc engine/job/life.cc engine/job/output.cc engine/job/output_blocks.cc engine/job/places.cc engine/job/ranges.cc
    engine/job/span_log.cc engine/job/store.cc engine/job/streams.cc
    engine/job/submissions.cc engine/job/window.cc engine/job/windowed.cc)
tilewire_library(engine
  SOURCES ${engine_device} ${engine_operation} ${engine_admission} ${engine_measure} ${engine_stores} ${engine_job}
          engine/engine.cc engine/lanes.cc engine/opening.cc
  DEPS tilewire_base tilewire_operation ${engine_cuda})
