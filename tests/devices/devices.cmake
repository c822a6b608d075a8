# Devices that misbehave on purpose, for the tests of everything that runs on a device.
tilewire_library(test_devices SOURCES devices/decorators.cc devices/faults.cc devices/slow_device.cc DEPS tilewire_engine)
tilewire_precompiled(tilewire_test_devices tests)
