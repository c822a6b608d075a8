tilewire_library(base SOURCES base/memory.cc base/timing.cc DEPS tilewire_array)
