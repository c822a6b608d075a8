# The installed programs against numpy. The system's python3, because that is the one whose numpy the install script brings.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
add_test(NAME integration.numpy
         COMMAND ${TILEWIRE_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/numpy_check.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>)
# Another block size and one lane: the same answers.
add_test(NAME integration.numpy_small_blocks
         COMMAND ${TILEWIRE_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/numpy_check.py --seed 2 $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>
                 -- --block-bytes 4KiB --lanes 1)
# README's Python, run as it stands.
add_test(NAME integration.readme
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/readme_check.py $<TARGET_FILE:tilewired> ${PROJECT_SOURCE_DIR}/README.md
                 ${PROJECT_SOURCE_DIR}/proto)
set_tests_properties(integration.numpy integration.numpy_small_blocks integration.readme PROPERTIES LABELS integration TIMEOUT 600)
