tilewire_library(base SOURCES base/memory.cc base/time_source.cc base/timing.cc DEPS tilewire_array)
