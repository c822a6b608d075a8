# The scripts that measure, at sizes that measure nothing.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
add_test(NAME integration.bench_scripts
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py $<TARGET_FILE_DIR:tilewire_bench>)
set_tests_properties(integration.bench_scripts PROPERTIES LABELS integration TIMEOUT 600)
# Those that run the load test: it is built elsewhere, but into the same folder.
add_test(NAME integration.bench_load_scripts
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/load_scripts_test.py $<TARGET_FILE_DIR:tilewire_bench>)
set_tests_properties(integration.bench_load_scripts PROPERTIES LABELS integration TIMEOUT 600)
