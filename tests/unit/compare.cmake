tilewire_test(tilewire_compare_tests
  SOURCES unit/compare_test.cc unit/compare_plan_test.cc unit/compare_golden_test.cc unit/compare_problem_test.cc
  DEPS tilewire_kernels LABELS unit optimised COMPUTES)
