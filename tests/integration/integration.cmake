# Whole servers over real sockets.
if(NOT TILEWIRE_RPC)
  return()
endif()
file(GLOB integration_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cc)
tilewire_test(tilewire_integration_tests SOURCES ${integration_tests}
              DEPS tilewire_rpc tilewire_ops tilewire_client LABELS integration TIMEOUT 300)
