# The client: files without gRPC; calls and the program against a server that checks the protocol and misbehaves on
# demand.
tilewire_test(client_npy_test SOURCES unit/client_npy_test.cc unit/client_file_test.cc DEPS tilewire_npy LABELS unit)
if(NOT TILEWIRE_RPC)
  return()
endif()
tilewire_library(client_fake SOURCES unit/client_fake_server.cc unit/client_deaf_peer.cc
                 DEPS tilewire_proto tilewire_wire tilewire_kernels)
tilewire_test(client_call_test SOURCES unit/client_call_test.cc unit/client_failure_test.cc unit/client_schedule_test.cc
              DEPS tilewire_client tilewire_client_fake LABELS unit)
