# The results page of the load test: as text, and in a browser where there is one.
tilewire_test(load_html_test SOURCES unit/load_html_test.cc DEPS tilewire_load_html LABELS unit TIMEOUT 60)
add_executable(load_html_page unit/load_html_page.cc)
target_link_libraries(load_html_page PRIVATE tilewire_load_html)
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
foreach(test page page_values)
  tilewire_script_test(load_html.${test} LABELS script NEEDS load_html_page
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/unit/load_${test}_test.py $<TARGET_FILE:load_html_page>)
endforeach()
