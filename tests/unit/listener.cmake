if(NOT TILEWIRE_RPC)
  return()
endif()
tilewire_test(distance_test SOURCES unit/window_class_test.cc unit/round_trip_test.cc DEPS tilewire_rpc LABELS unit GRPC)
