tilewire_library(base SOURCES base/addresses.cc base/environment.cc base/executor.cc base/memory.cc base/time_source.cc base/threads.cc base/timer.cc base/timing.cc
                 DEPS tilewire_array)
