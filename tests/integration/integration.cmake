# Whole servers over real sockets.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_package(nlohmann_json REQUIRED)
file(GLOB integration_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cc)
# What they test holds without sanitizers only (bounds on memory, gRPC's end), so they run in both kinds of build.
set(memory_tests cancel_test.cc overload_test.cc shutdown_test.cc window_program_test.cc)
list(TRANSFORM memory_tests PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(REMOVE_ITEM integration_tests ${memory_tests})
# Who gets in: a program of its own, so that it is built without all others.
set(door_tests accounts_test.cc check_config_test.cc client_security_test.cc coming_again_test.cc connection_limits_test.cc connections_test.cc distance_test.cc floods_test.cc given_window_test.cc health_test.cc health_watch_test.cc identity_test.cc jwt_test.cc leftovers_test.cc listener_test.cc log_secrets_test.cc logs_test.cc message_watch_test.cc policy_limits_test.cc policy_test.cc receive_messages_test.cc receive_shares_test.cc rotation_test.cc shared_queue_test.cc shedding_test.cc sockets_test.cc waiting_calls_test.cc)
list(TRANSFORM door_tests PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(REMOVE_ITEM integration_tests ${door_tests})
set(crowd ${CMAKE_CURRENT_LIST_DIR}/../bench/crowd.cc)   # stalled clients
function(tilewire_integration_test name labels)
  tilewire_test(${name} SOURCES ${ARGN} DEPS tilewire_test_devices tilewire_rpc tilewire_ops tilewire_client nlohmann_json::nlohmann_json
                LABELS ${labels} GRPC)
  # Tests of the programs themselves start them as operators do.
  add_dependencies(${name} tilewired tilewire)
  target_compile_definitions(${name} PRIVATE TILEWIRE_TILEWIRED="$<TARGET_FILE:tilewired>" TILEWIRE_TILEWIRE="$<TARGET_FILE:tilewire>"
                                             TILEWIRE_HAPROXY_CFG="${PROJECT_SOURCE_DIR}/deploy/haproxy.cfg")
endfunction()
tilewire_integration_test(tilewire_integration_tests integration ${integration_tests} ${CMAKE_CURRENT_LIST_DIR}/operation_rows.cc ${crowd})
tilewire_integration_test(tilewire_door_tests integration ${door_tests} ${CMAKE_CURRENT_LIST_DIR}/../bench/relay.cc ${CMAKE_CURRENT_LIST_DIR}/../bench/http2_frames.cc)
tilewire_integration_test(tilewire_memory_tests "integration;optimised" ${memory_tests} ${crowd})
