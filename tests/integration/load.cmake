# The load test against whole servers, and the limits that it asks them for. Apart from the other integration tests: it
# starts and stops servers for some seconds each.
if(NOT TILEWIRE_RPC)
  return()
endif()
tilewire_test(tilewire_load_integration_tests SOURCES integration/load_checks.cc integration/load_resident_checks.cc integration/load_region_checks.cc integration/load_study_checks.cc
                      integration/ceilings_checks.cc
              DEPS tilewire_test_devices tilewire_rpc tilewire_client nlohmann_json::nlohmann_json LABELS integration GRPC)
add_dependencies(tilewire_load_integration_tests tilewired tilewire-load)
target_compile_definitions(tilewire_load_integration_tests PRIVATE TILEWIRE_TILEWIRED="$<TARGET_FILE:tilewired>"
                           TILEWIRE_LOAD="$<TARGET_FILE:tilewire-load>"
                           TILEWIRE_LOAD_SCENARIOS="${PROJECT_SOURCE_DIR}/deploy/load")
