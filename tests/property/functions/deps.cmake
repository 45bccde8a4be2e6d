if(NOT TARGET fusion_reference)
  add_subdirectory(reference)
endif()
add_library(fusion_routine_table STATIC ${folder}/routine_table.cc ${folder}/element_routine_table.cc
  ${folder}/host_interpreter.cc ${folder}/operand_shapes.cc)
target_include_directories(fusion_routine_table PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(fusion_routine_table PUBLIC fusion_catalog fusion_reference)
set(DEPS fusion_catalog fusion_reference fusion_routine_table)
target_compile_definitions(fusion_routine_table INTERFACE
  FUSION_NVCC_PATH="$<IF:$<BOOL:${FUSION_NVCC}>,${FUSION_NVCC},>")
