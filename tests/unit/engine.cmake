tilewire_test(tilewire_engine_tests
  SOURCES unit/engine_timer_test.cc unit/engine_admission_at_once_test.cc unit/engine_admission_test.cc unit/engine_admission_stress_test.cc unit/engine_admission_executor_test.cc
          unit/engine_intake_test.cc unit/engine_job_parts_test.cc unit/engine_output_test.cc unit/engine_places_test.cc unit/engine_job_test.cc unit/engine_job_flow_test.cc
          unit/engine_admission_share_test.cc unit/engine_shares_test.cc
          unit/engine_fair_queue_test.cc unit/engine_orders_test.cc unit/engine_admission_orders_test.cc unit/engine_landing_test.cc unit/engine_on_host_test.cc unit/engine_rate_limits_test.cc
          unit/engine_job_failure_test.cc unit/engine_engine_test.cc unit/engine_span_log_test.cc
          unit/engine_introspection_test.cc unit/engine_small_test.cc unit/engine_help_test.cc unit/engine_copy_rates_test.cc
          unit/engine_streams_test.cc unit/engine_lane_clock_test.cc unit/engine_window_test.cc
          unit/engine_window_rules_test.cc unit/engine_ceilings_test.cc
          unit/engine_array_store_test.cc unit/engine_array_model_test.cc
          unit/engine_resident_test.cc unit/engine_resident_failure_test.cc unit/engine_resident_result_test.cc unit/engine_awaited_test.cc
          unit/engine_guarded_copy_test.cc unit/engine_region_store_test.cc unit/engine_region_job_test.cc
          unit/engine_region_failure_test.cc unit/engine_device_region_test.cc
          unit/engine_device_region_store_test.cc unit/engine_threads_test.cc unit/engine_results_test.cc
          unit/engine_stored_results_test.cc
  DEPS tilewire_test_devices tilewire_kernels LABELS unit tsan)
