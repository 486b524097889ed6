# Options, the flags every target shares, and the one helper that makes a module.
option(MRROPE_DEVELOPER "Build tests, benchmarks and examples" ${PROJECT_IS_TOP_LEVEL})
option(MRROPE_LIBRARY_ONLY "Build the library alone: a compiler, Highway and nlohmann_json suffice" OFF)
option(MRROPE_WERROR "Treat warnings as errors" OFF)
option(MRROPE_UNITY "Compile several files at once, with precompiled headers: faster from scratch" OFF)
option(MRROPE_ANY_PROCESSOR "Code for every processor of the kind, in files of which the command loads one" OFF)
option(MRROPE_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(MRROPE_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # for clang-tidy
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # `ninja mrrope_engine` compiles the engine, not llama.cpp
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# Elsewhere ggml has one kind of processor, or puts no versions beside each other.
if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|aarch64|arm64)$")
  set(MRROPE_ANY_PROCESSOR OFF)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths inside the build folder are taken as relative, so that builds of other presets find what was compiled
  # with the same flags. With g++ also what uses a precompiled header; clang compares the times of its files.
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_BINARY_DIR})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND CMAKE_C_COMPILER_LAUNCHER CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  list(APPEND CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

add_library(mrrope_flags INTERFACE)
# No contraction: a plan is bit for bit the same on every machine with the same libm.
target_compile_options(mrrope_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off
                       -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # no path of this machine in messages
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlaps and lengths in std::string that are not there (its bug 105651).
  target_compile_options(mrrope_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(MRROPE_WERROR)
  target_compile_options(mrrope_flags INTERFACE -Werror)
endif()
if(MRROPE_SANITIZE)
  target_compile_options(mrrope_flags INTERFACE -fsanitize=${MRROPE_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(mrrope_flags INTERFACE -fsanitize=${MRROPE_SANITIZE})
endif()
if(MRROPE_FUZZ)
  target_compile_options(mrrope_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(mrrope_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What waits for people, files, models and the network.
set(MRROPE_LIGHT_MODULES export proof eval report tune serve cli)

# mrrope_module(NAME [SOURCES ...] [LINK outside libraries])
# makes mrrope_NAME from src/NAME; headers are found as "NAME/file.h" and "mrrope/file.h". It links
# the modules that src/modules.txt allows it.
function(mrrope_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/modules.txt)
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/modules.txt row REGEX "^${name}:")
  if(NOT row)
    message(FATAL_ERROR "module ${name} has no row in src/modules.txt")
  endif()
  string(REGEX REPLACE "^${name}: *" "" uses "${row}")
  separate_arguments(uses)
  list(TRANSFORM uses PREPEND mrrope_)
  set(folders ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  if(NOT arg_SOURCES)  # headers only
    add_library(mrrope_${name} INTERFACE)
    target_include_directories(mrrope_${name} INTERFACE ${folders})
    target_link_libraries(mrrope_${name} INTERFACE ${uses} ${arg_LINK})
    return()
  endif()
  list(TRANSFORM arg_SOURCES PREPEND ${name}/)
  add_library(mrrope_${name} STATIC ${arg_SOURCES})
  target_include_directories(mrrope_${name} PUBLIC ${folders})
  target_link_libraries(mrrope_${name} PUBLIC ${uses} PRIVATE mrrope_flags ${arg_LINK})
  # At -O1 the light ones compile in 60 % of the time. A precompiled header serves the modules with the
  # same flags: g++ 13 ignores one made at another -O.
  set(precompiled base)
  if(name IN_LIST MRROPE_LIGHT_MODULES AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(mrrope_${name} PRIVATE -O1)
    list(GET MRROPE_LIGHT_MODULES 0 precompiled)
  endif()
  if(MRROPE_UNITY AND name STREQUAL precompiled)
    target_precompile_headers(mrrope_${name} PRIVATE <nlohmann/json.hpp> <algorithm> <filesystem>
                              <functional> <map> <memory> <optional> <span> <string> <vector>)
  elseif(MRROPE_UNITY AND "nlohmann_json::nlohmann_json" IN_LIST arg_LINK)
    target_precompile_headers(mrrope_${name} REUSE_FROM mrrope_${precompiled})
  endif()
endfunction()

# mrrope_embed(MODULE NAME FILE): the file becomes the string mrrope::embedded::NAME of the module.
function(mrrope_embed module name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} content)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embed.cpp.in
                 ${PROJECT_BINARY_DIR}/embedded/${name}.cpp @ONLY)
  target_sources(mrrope_${module} PRIVATE ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
endfunction()
