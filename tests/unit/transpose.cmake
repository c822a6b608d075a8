tilewire_test(transpose_test
  SOURCES unit/transpose_plan_test.cc unit/transpose_host_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
