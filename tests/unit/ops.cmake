tilewire_test(memory_limits_test SOURCES unit/ops_memory_test.cc DEPS tilewire_base LABELS unit)
if(NOT TARGET tilewire_ops)
  return()
endif()
tilewire_test(ops_test
  SOURCES unit/ops_config_test.cc unit/ops_environment_test.cc unit/ops_flags_test.cc unit/ops_values_test.cc unit/ops_logging_test.cc unit/ops_log_sink_test.cc unit/ops_metrics_test.cc
          unit/ops_process_test.cc unit/ops_failure_fold_test.cc unit/ops_audit_log_test.cc unit/ops_security_test.cc unit/ops_confinement_test.cc
  DEPS tilewire_ops LABELS unit TIMEOUT 60)
tilewire_test(allocator_test SOURCES unit/ops_allocator_test.cc DEPS tilewire_ops LABELS unit optimised TIMEOUT 60)
target_compile_definitions(ops_test PRIVATE TILEWIRE_OPS_README="${CMAKE_SOURCE_DIR}/server/ops/README.md")
