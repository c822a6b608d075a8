# Attacks on a whole server, bounded; longer by option.
if(NOT TARGET tilewired)
  return()
endif()
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
tilewire_script_test(chaos.doors LABELS script ALONE NEEDS tilewired tilewire
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/doors_test.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>)
tilewire_script_test(chaos.holders LABELS script ALONE NEEDS tilewired tilewire
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/holders_test.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire>)
# The system's python3, because that is the one whose numpy and gRPC the install script brings.
find_program(TILEWIRE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
tilewire_script_test(chaos.campaign LABELS full ALONE TIMEOUT 900 NEEDS tilewired tilewire
  COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/campaign.py $<TARGET_FILE:tilewired> $<TARGET_FILE:tilewire> --seed 1)
# The same server with a device that fails as it is told.
add_executable(tilewired_faulty chaos/faulty_device.cc ${PROJECT_SOURCE_DIR}/server/main.cc ${PROJECT_SOURCE_DIR}/server/options.cc)
target_link_libraries(tilewired_faulty PRIVATE tilewire_test_devices tilewire_ops tilewire_rpc tilewire_engine)
tilewire_script_test(chaos.device LABELS full ALONE TIMEOUT 900 NEEDS tilewired_faulty tilewire
  COMMAND ${TILEWIRE_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/chaos/campaign.py $<TARGET_FILE:tilewired_faulty> $<TARGET_FILE:tilewire> --seed 1
  --only slow_device,device_faults,dead_device)
