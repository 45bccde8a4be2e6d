if(NOT TARGET fusion_reference)
  add_subdirectory(reference)
endif()
set(DEPS fusion_catalog fusion_reference)
set_source_files_properties(${folder}/device_compile_test.cc PROPERTIES COMPILE_DEFINITIONS
  FUSION_NVCC_PATH="$<IF:$<BOOL:${FUSION_NVCC}>,${FUSION_NVCC},>")
# Each includes the routines of all functions.
set_source_files_properties(${folder}/routine_table.cc ${folder}/element_routine_table.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
