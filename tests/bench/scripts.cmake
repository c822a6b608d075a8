# The scripts that measure, at sizes that measure nothing.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
set(programs tilewired tilewire tilewire-load tilewire_bench tilewire_raw_peer tilewire_independent_bench)
tilewire_script_test(integration.bench_scripts LABELS script NEEDS ${programs}
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py $<TARGET_FILE_DIR:tilewire_bench>)
# Those that run the load test: it is built elsewhere, but into the same folder.
tilewire_script_test(integration.bench_load_scripts LABELS script NEEDS ${programs}
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/load_scripts_test.py $<TARGET_FILE_DIR:tilewire_bench>)
