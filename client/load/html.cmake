# tilewire_load_html: the results page of tilewire-load. No gRPC.
find_package(nlohmann_json REQUIRED)
set(_page ${CMAKE_CURRENT_LIST_DIR}/page)
set(_styles style.css charts.css print.css)
set(_scripts format.js dom.js scale.js explore.js plot.js facts.js summary.js overtime.js histogram.js percentiles.js stages.js
             traces.js heatmap.js study.js gain.js ramp.js tables.js main.js)
find_file(TILEWIRE_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
mark_as_advanced(TILEWIRE_CHART_JS)
set(_chart_version "")
if(TILEWIRE_CHART_JS)
  file(STRINGS ${TILEWIRE_CHART_JS} _chart_version REGEX "Chart.js v3\\.9" LIMIT_COUNT 1)
endif()
if(NOT _chart_version)
  message(FATAL_ERROR "Chart.js 3.9 was not found: the load test's results page carries it. Install libjs-chart.js "
                      "(deploy/install-deps.sh does), or set TILEWIRE_CHART_JS to its chart.min.js.")
endif()
set(_page_source ${CMAKE_BINARY_DIR}/generated/client/load/page.cc)
list(JOIN _styles "," _style_names)
list(JOIN _scripts "," _script_names)
set(_assets ${_styles} ${_scripts})
list(TRANSFORM _assets PREPEND ${_page}/)
add_custom_command(
  OUTPUT ${_page_source}
  COMMAND ${CMAKE_COMMAND} -D PAGE=page.html -D STYLES=${_style_names} -D LIBRARY=chart_licence.txt,${TILEWIRE_CHART_JS} -D SCRIPTS=${_script_names}
          -D OUTPUT=${_page_source} -P ${_page}/embed.cmake
  DEPENDS ${_page}/embed.cmake ${_page}/page.html ${_page}/chart_licence.txt ${TILEWIRE_CHART_JS} ${_assets}
  COMMENT "Embedding the results page" VERBATIM)
tilewire_library(load_html SOURCES ${CMAKE_CURRENT_LIST_DIR}/html.cc ${_page_source} DEPS nlohmann_json::nlohmann_json)
