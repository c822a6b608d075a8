tilewire_test(wire_test SOURCES unit/wire_test.cc unit/wire_unary_test.cc DEPS tilewire_wire LABELS unit)
if(TILEWIRE_RPC)
  tilewire_test(wire_proto_test SOURCES unit/wire_proto_test.cc DEPS tilewire_wire tilewire_proto LABELS unit GRPC)
  # The system's python3, because that is the one whose protobuf the install script brings.
  find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(TILEWIRE_PROTOC protoc REQUIRED)
  tilewire_script_test(proto.options LABELS script
    COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/unit/proto_options_test.py ${TILEWIRE_PROTOC} ${CMAKE_SOURCE_DIR}/proto)
endif()
