# For the programs that are users of partitioned loops: the CUDA runtime, linked statically, and files compiled with nvcc. The
# services never link it (the driver and NVRTC are loaded at run time).
#
# fusion_cuda_runtime exists where nvcc, the runtime's headers and its static library are there.
# fusion_cuda_library(NAME file.cu): a static library with code for sm_90, and PTX for what is newer or, from sm_80, older. A command,
# not the language CUDA: that would have nvcc understand the options and the linker of this project.
if(FUSION_NVCC)
  get_filename_component(nvcc_real ${FUSION_NVCC} REALPATH)
  get_filename_component(FUSION_CUDA_ROOT ${nvcc_real}/../.. ABSOLUTE)
  find_path(FUSION_CUDA_RUNTIME_INCLUDE_DIR cuda_runtime_api.h
    HINTS ${FUSION_CUDA_ROOT}/include ${FUSION_CUDA_ROOT}/targets/x86_64-linux/include /usr/local/cuda/include)
  find_library(FUSION_CUDART_STATIC cudart_static
    HINTS ${FUSION_CUDA_ROOT}/lib64 ${FUSION_CUDA_ROOT}/lib ${FUSION_CUDA_ROOT}/targets/x86_64-linux/lib /usr/local/cuda/lib64)
endif()
if(FUSION_NVCC AND FUSION_CUDA_RUNTIME_INCLUDE_DIR AND FUSION_CUDART_STATIC)
  add_library(fusion_cuda_runtime INTERFACE)
  target_include_directories(fusion_cuda_runtime SYSTEM INTERFACE ${FUSION_CUDA_RUNTIME_INCLUDE_DIR})
  target_link_libraries(fusion_cuda_runtime INTERFACE ${FUSION_CUDART_STATIC} Threads::Threads ${CMAKE_DL_LIBS} rt)
endif()

function(fusion_cuda_library name source)
  get_filename_component(path ${source} ABSOLUTE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${FUSION_NVCC} -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80
            -Xcompiler -fPIC -I${CMAKE_SOURCE_DIR} -MD -MF ${object}.d -c ${path} -o ${object}
    DEPENDS ${path}
    DEPFILE ${object}.d
    COMMENT "Building CUDA object ${name}.o"
    VERBATIM)
  add_library(${name} STATIC ${object})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} INTERFACE fusion_cuda_runtime)
endfunction()
