# The installed programs against numpy. The system's python3, because that is the one whose numpy the install script brings.
if(NOT TILEWIRE_RPC)
  return()
endif()
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
tilewire_script_test(integration.numpy LABELS script NEEDS tilewired tilewire
         COMMAND ${TILEWIRE_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/numpy_check.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>)
# Another block size and one lane: the same answers.
tilewire_script_test(integration.numpy_small_blocks LABELS script NEEDS tilewired tilewire
         COMMAND ${TILEWIRE_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/numpy_check.py --seed 2 $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>
                 -- --block-bytes 4KiB --lanes 1)
# Every metric of compare, and its bits by exact arithmetic.
tilewire_script_test(integration.compare_exact LABELS script NEEDS tilewired tilewire
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/compare_check.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>)
# README's Python, run as it stands.
tilewire_script_test(integration.readme LABELS script NEEDS tilewired
         COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/readme_check.py $<TARGET_FILE:tilewired> ${PROJECT_SOURCE_DIR}/README.md
                 ${PROJECT_SOURCE_DIR}/proto)
