# fusion_module(NAME SOURCES a.cc ... DEPS lib ...)
#
# One static library per folder. Includes are written from the root of the repository
# ("server/graph/graph.h"); which folder may include which is checked by tests/check_includes.py.
function(fusion_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# fusion_program(NAME SOURCES a.cc ... DEPS lib ...): an executable that lands in build/<preset>/bin.
function(fusion_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()
