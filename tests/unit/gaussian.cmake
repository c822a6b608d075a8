tilewire_test(tilewire_gaussian_tests
  SOURCES unit/gaussian_plan_test.cc unit/gaussian_host_test.cc unit/gaussian_accuracy_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
