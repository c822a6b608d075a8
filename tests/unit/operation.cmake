tilewire_test(tilewire_operation_tests
  SOURCES unit/operation_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
