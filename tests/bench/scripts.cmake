# The scripts that measure, at sizes that measure nothing.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
set(programs tilewired tilewire tilewire-load tilewire_bench tilewire_raw_peer tilewire_independent_bench)
tilewire_script_test(integration.bench_scripts LABELS script NEEDS ${programs}
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py $<TARGET_FILE_DIR:tilewire_bench>)
# Those that run the load test: it is built elsewhere, but into the same folder. They mostly wait for it: each class by itself, side by side.
set(file ${CMAKE_CURRENT_LIST_DIR}/load_scripts_test.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
file(STRINGS ${file} classes REGEX "^class [A-Za-z]+\\(Scripts\\)")
foreach(class IN LISTS classes)
  string(REGEX REPLACE "^class ([A-Za-z]+).*" "\\1" name "${class}")
  tilewire_script_test(integration.bench_load_scripts.${name} LABELS script NEEDS ${programs}
           COMMAND ${TILEWIRE_PYTHON} -B ${file} $<TARGET_FILE_DIR:tilewire_bench> ${name})
endforeach()
