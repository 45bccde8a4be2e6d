# Without nvcc the tests are there and say SKIP.
set(DEPS Threads::Threads)
if(TARGET fusion_cuda_runtime)
  fusion_cuda_library(fusion_partitioned_loop_kernels ${CMAKE_CURRENT_SOURCE_DIR}/gpu/partitioned_loop/kernels.cu)
  target_compile_definitions(fusion_partitioned_loop_kernels INTERFACE FUSION_HAS_CUDA_RUNTIME)
  set(DEPS fusion_partitioned_loop_kernels)
endif()
