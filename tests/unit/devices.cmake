tilewire_test(tilewire_engine_device_tests
  SOURCES unit/engine_device_test.cc unit/engine_decorators_test.cc unit/engine_pools_test.cc
  DEPS tilewire_test_devices tilewire_kernels LABELS unit tsan)
tilewire_tell_cuda(unit/engine_device_test.cc)
