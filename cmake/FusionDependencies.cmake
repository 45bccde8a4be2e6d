# Third-party libraries, all from the distribution's packages (deploy/install-deps.sh).

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_program(FUSION_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# lp_solve ships no CMake or pkg-config file. Debian's static library needs its own dependencies named.
find_path(LPSOLVE_INCLUDE_DIR lpsolve/lp_lib.h REQUIRED)
find_library(LPSOLVE_LIBRARY NAMES lpsolve55_pic liblpsolve55_pic.a lpsolve55 REQUIRED)
add_library(fusion_lpsolve INTERFACE)
target_include_directories(fusion_lpsolve INTERFACE ${LPSOLVE_INCLUDE_DIR})
find_library(LPSOLVE_COLAMD colamd)
find_library(LPSOLVE_SUITESPARSE suitesparseconfig)
target_link_libraries(fusion_lpsolve INTERFACE ${LPSOLVE_LIBRARY}
  $<$<BOOL:${LPSOLVE_COLAMD}>:${LPSOLVE_COLAMD}> ${CMAKE_DL_LIBS} m)

# The CUDA Toolkit is never linked: the driver and NVRTC are loaded at run time. nvcc is used by tests when present.
find_program(FUSION_NVCC nvcc HINTS /usr/local/cuda/bin)
if(FUSION_NVCC)
  message(STATUS "CUDA Toolkit found: ${FUSION_NVCC} (exported folders are also compiled with nvcc in tests)")
else()
  message(STATUS "CUDA Toolkit not found: everything builds; tests that need nvcc or NVRTC say SKIP")
endif()
