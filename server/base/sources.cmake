tilewire_library(base SOURCES base/timing.cc DEPS tilewire_array)
