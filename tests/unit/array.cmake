tilewire_test(tilewire_array_tests SOURCES unit/array_test.cc DEPS tilewire_array LABELS unit optimised COMPUTES)
