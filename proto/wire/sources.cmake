# The codec needs no gRPC; its checksums are isa-l's.
tilewire_library(wire SOURCES wire/codec.cc wire/cursor.cc wire/encode.cc wire/crc32c.cc DEPS tilewire_array)
find_path(TILEWIRE_ISAL_INCLUDE isa-l/crc.h)
find_library(TILEWIRE_ISAL_LIBRARY isal)
mark_as_advanced(TILEWIRE_ISAL_INCLUDE TILEWIRE_ISAL_LIBRARY)
if(NOT TILEWIRE_ISAL_INCLUDE OR NOT TILEWIRE_ISAL_LIBRARY)
  message(FATAL_ERROR "isa-l was not found: isa-l/crc.h and the library isal are needed for checksums. "
                      "Install libisal-dev (deploy/install-deps.sh does), or set TILEWIRE_ISAL_INCLUDE and TILEWIRE_ISAL_LIBRARY.")
endif()
target_include_directories(tilewire_wire SYSTEM PRIVATE ${TILEWIRE_ISAL_INCLUDE})
target_link_libraries(tilewire_wire PRIVATE ${TILEWIRE_ISAL_LIBRARY})
