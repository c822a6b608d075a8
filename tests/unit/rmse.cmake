tilewire_test(tilewire_rmse_tests
  SOURCES unit/rmse_test.cc unit/rmse_plan_test.cc unit/rmse_golden_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
tilewire_test(tilewire_rmse_choice_tests
  SOURCES unit/rmse_choice_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
tilewire_test(tilewire_rmse_host_tests
  SOURCES unit/rmse_host_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
tilewire_test(tilewire_rmse_engine_tests
  SOURCES unit/rmse_engine_test.cc
  DEPS tilewire_test_devices tilewire_kernels LABELS unit optimised tsan COMPUTES)
