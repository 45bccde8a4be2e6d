# fusion_precompile(TARGET header.h) compiles cmake/header.h once, for TARGET and for whoever says
# fusion_precompile(TARGET2 REUSE_FROM TARGET). The headers in it are the ones of other projects that most files include; files
# include what they use all the same, and the preset dev builds without any of this (FUSION_PRECOMPILE=OFF).
option(FUSION_PRECOMPILE "Compile the headers of other projects once" ON)
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

# How many files of a target are compiled together, where their headers cost the compiler more than they do. A name in an
# anonymous namespace must then be unique among them. Not without FUSION_PRECOMPILE, which shows includes that are missing.
function(fusion_compile_together target count)
  if(FUSION_PRECOMPILE AND "${count}" GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

# fusion_module(NAME SOURCES a.cc ... DEPS lib ... [COMPILED_TOGETHER count])
#
# One static library per folder. Includes are written from the root of the repository
# ("server/graph/graph.h"); which folder may include which is checked by tests/check_includes.py.
function(fusion_module name)
  cmake_parse_arguments(ARG "" "COMPILED_TOGETHER" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  fusion_precompile(${name} REUSE_FROM fusion_proto)
  fusion_compile_together(${name} "${ARG_COMPILED_TOGETHER}")
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# fusion_program(NAME SOURCES a.cc ... DEPS lib ... [COMPILED_TOGETHER count]): an executable that lands in build/<preset>/bin.
function(fusion_program name)
  cmake_parse_arguments(ARG "" "COMPILED_TOGETHER" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  fusion_precompile(${name} REUSE_FROM fusion_proto)
  fusion_compile_together(${name} "${ARG_COMPILED_TOGETHER}")
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()
