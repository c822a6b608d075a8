tilewire_library(base SOURCES base/memory.cc base/timing.cc base/executor.cc DEPS tilewire_array)
