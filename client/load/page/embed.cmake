# Puts the page together and writes it as a C++ source, so that programs carry it in themselves.
# Usage: cmake -D PAGE=page.html -D STYLES=a.css,b.css -D LIBRARY=a.txt,/b.js -D SCRIPTS=a.js,b.js -D OUTPUT=page.cc -P embed.cmake
# Paths are relative to this folder, or absolute. Scripts share one scope, in the order given; a library has its own.

# Puts the text of the files of a comma-separated list, one after the other, into the variable `result`.
function(concatenate names result)
  string(REPLACE "," ";" names "${names}")
  set(all "")
  foreach(name IN LISTS names)
    cmake_path(ABSOLUTE_PATH name BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    file(READ ${name} text)
    # Would end the element that the text is put into.
    if(text MATCHES "</(script|style)")
      message(FATAL_ERROR "${name} contains \"${CMAKE_MATCH_0}\"")
    endif()
    string(APPEND all "${text}")
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

concatenate("${STYLES}" styles)
concatenate("${LIBRARY}" library)
concatenate("${SCRIPTS}" scripts)
file(READ ${CMAKE_CURRENT_LIST_DIR}/${PAGE} page)
foreach(part styles library scripts)
  string(FIND "${page}" "{{${part}}}" at)
  if(at LESS 0)
    message(FATAL_ERROR "${PAGE} has no place for {{${part}}}")
  endif()
  string(REPLACE "{{${part}}}" "${${part}}" page "${page}")
endforeach()
foreach(mark palette result)   # what client/load/html.cc puts in
  string(REGEX MATCHALL "{{${mark}}}" marks "${page}")
  list(LENGTH marks count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${PAGE} needs {{${mark}}} exactly once, not ${count} times")
  endif()
endforeach()

string(HEX "${page}" hex)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "// Written by client/load/page/embed.cmake from the files beside it.
#include \"client/load/page.h\"

namespace tilewire::load {
namespace {
constexpr unsigned char kPage[] = {
${bytes}
};
}  // namespace

std::string_view PageTemplate() { return {reinterpret_cast<const char*>(kPage), sizeof(kPage)}; }

}  // namespace tilewire::load
")
