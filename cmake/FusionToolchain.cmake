# Compiler flags, sanitizers, ccache and a fast linker.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(FUSION_CCACHE ccache)
if(FUSION_CCACHE)
  # What ccache asks for before it takes precompiled headers.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${FUSION_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# -O2 without debug information: the code that must be fast is generated, not this.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# The same code model and threads everywhere: a header compiled with one is of no use to a file compiled with the other.
add_compile_options(-fPIC -pthread -ffunction-sections -fdata-sections)
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# GCC 12 sees writes behind the end of strings that are joined with operator+ (GCC's bug 105329): there are none.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# GCC looks for memory that it could free only beyond a gigabyte: looking costs more than the memory is worth.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-heapsize=1000000)
endif()

set(FUSION_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
if(FUSION_SANITIZE)
  add_compile_options(-fsanitize=${FUSION_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${FUSION_SANITIZE})
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold FUSION_HAS_GOLD)
if(FUSION_HAS_GOLD AND NOT FUSION_SANITIZE)
  # Equal functions of templates become one: 1.5 MB less to install.
  add_link_options(-fuse-ld=gold -Wl,--icf=safe)
endif()
add_link_options(-Wl,--as-needed -Wl,--gc-sections)
