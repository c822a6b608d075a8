tilewire_test(wire_test SOURCES unit/wire_test.cc unit/wire_unary_test.cc DEPS tilewire_wire LABELS unit)
if(TILEWIRE_RPC)
  tilewire_test(wire_proto_test SOURCES unit/wire_proto_test.cc DEPS tilewire_wire tilewire_proto LABELS unit GRPC)
endif()
