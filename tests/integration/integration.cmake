# Whole servers over real sockets.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_package(nlohmann_json REQUIRED)
file(GLOB integration_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cc)
tilewire_test(tilewire_integration_tests SOURCES ${integration_tests} ${CMAKE_CURRENT_LIST_DIR}/../bench/crowd.cc
              DEPS tilewire_rpc tilewire_ops tilewire_client nlohmann_json::nlohmann_json LABELS integration GRPC)
# Tests of the program itself start it as operators do.
add_dependencies(tilewire_integration_tests tilewired tilewire)
target_compile_definitions(tilewire_integration_tests PRIVATE TILEWIRE_TILEWIRED="$<TARGET_FILE:tilewired>"
                                                             TILEWIRE_TILEWIRE="$<TARGET_FILE:tilewire>"
                                                             TILEWIRE_HAPROXY_CFG="${PROJECT_SOURCE_DIR}/deploy/haproxy.cfg")
