# The load test: its parts with calls, clocks and files of the tests' own, and the program against a server that lies.
if(NOT TILEWIRE_RPC)
  return()
endif()
tilewire_test(load_test
              SOURCES unit/load_measures_test.cc unit/load_scenario_test.cc unit/load_generator_test.cc unit/load_mix_test.cc unit/load_clock_test.cc
                      unit/load_verdict_test.cc unit/load_compare_test.cc unit/load_study_test.cc unit/load_program_test.cc unit/load_traces_test.cc
              DEPS tilewire_load tilewire_load_html tilewire_client_fake LABELS unit GRPC)
# TILEWIRE_CLI: client_cli_testing.h names the other program too.
target_compile_definitions(load_test PRIVATE TILEWIRE_CLI="$<TARGET_FILE:tilewire>" TILEWIRE_LOAD="$<TARGET_FILE:tilewire-load>"
                           TILEWIRE_LOAD_SCENARIOS="${PROJECT_SOURCE_DIR}/deploy/load")
add_dependencies(load_test tilewire-load)
