# Headers of other projects and of the protocol are compiled once (fusion_precompile), and the files of a target are compiled together
# (fusion_compile_together): what they include takes the compiler longer than what they say. Files include what they use all the
# same, and the preset dev builds without any of this (FUSION_PRECOMPILE=OFF).
option(FUSION_PRECOMPILE "Compile headers once, and the files of a target together" ON)

# fusion_precompile(TARGET header.h) compiles cmake/header.h for TARGET and for whoever says
# fusion_precompile(TARGET2 REUSE_FROM TARGET).
function(fusion_precompile target)
  if(NOT FUSION_PRECOMPILE)
    return()
  endif()
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${ARGV1})
  endif()
endfunction()

# fusion_compile_together(TARGET) compiles up to 12 files of the target at once, in batches of the same size. Names in anonymous
# namespaces are therefore unique in a folder.
function(fusion_compile_together target)
  if(NOT FUSION_PRECOMPILE)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + 11) / 12")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  if(size GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# fusion_module(NAME SOURCES a.cc ... DEPS lib ...)
#
# One static library per folder. Includes are written from the root of the repository
# ("server/graph/graph.h"); which folder may include which is checked by tests/check_includes.py.
function(fusion_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  fusion_precompile(${name} REUSE_FROM fusion_precompiled)
  fusion_compile_together(${name})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# fusion_program(NAME SOURCES a.cc ... DEPS lib ...): an executable that lands in build/<preset>/bin.
function(fusion_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  fusion_precompile(${name} REUSE_FROM fusion_precompiled)
  fusion_compile_together(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()
