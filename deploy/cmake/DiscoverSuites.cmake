# Read by CTest itself: declares one test a GoogleTest suite of one program. One process a suite, not one a case: under
# the sanitizers a program takes longer to start than most cases take to run.
# Variables, set by the file that includes this one: PROGRAM, NAME, LABELS, TIMEOUT, REPORTS (folder for GoogleTest's own
# reports, which tests/count.py adds up), ALONE (regular expression of the suites that run while no other test does).
if(NOT EXISTS ${PROGRAM})
  add_test(${NAME}_NOT_BUILT ${NAME}_NOT_BUILT)   # as gtest_discover_tests() has it: fails, by a name that says why
  return()
endif()
set(list ${REPORTS}/${NAME}.list)
if(NOT EXISTS ${list} OR ${PROGRAM} IS_NEWER_THAN ${list})
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE result
                  ERROR_VARIABLE complaints)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests ended with ${result}:\n${listed}${complaints}")
  endif()
  string(REGEX MATCHALL "(^|\n)[^ \n][^ \n]*\\.[ \n]" suites "\n${listed}")   # cases are indented
  if(NOT suites)
    message(FATAL_ERROR "${PROGRAM} lists no tests")
  endif()
  file(WRITE ${list}.new "")
  foreach(suite IN LISTS suites)
    string(REGEX REPLACE "[ \n]|\\.[ \n]*$" "" suite "${suite}")
    file(APPEND ${list}.new "${suite}\n")
  endforeach()
  file(RENAME ${list}.new ${list})
endif()
file(STRINGS ${list} suites)
foreach(suite IN LISTS suites)
  if(DEFINED "program_of_${suite}")   # which of the two a filter or a report means nobody could tell
    message(FATAL_ERROR "${NAME} and ${program_of_${suite}} both have a suite ${suite}")
  endif()
  set("program_of_${suite}" ${NAME})
  string(REPLACE "/" "-" report "${NAME}.${suite}")
  add_test(${suite} ${PROGRAM} --gtest_filter=${suite}.* --gtest_output=xml:${REPORTS}/${report}.xml)
  set_tests_properties(${suite} PROPERTIES LABELS "${LABELS}" TIMEOUT ${TIMEOUT})
  if(ALONE AND suite MATCHES "${ALONE}")
    set_tests_properties(${suite} PROPERTIES RUN_SERIAL TRUE)
  endif()
endforeach()
