# llama.cpp, built from source as it is: target llama, llama_chat with what is used of its common
# library, and for tests llama-server, which nothing but a test that asks for it builds. Its own
# switches (GGML_CUDA, GGML_METAL, GGML_VULKAN, GGML_NATIVE, ...) pass through.
#
# MRROPE_LLAMA_SOURCE names the source folder; tools/fetch_llama.sh fills the default one. The engine
# relies on more than the API (names and operands of graph nodes), so exactly one version will do.
set(MRROPE_LLAMA_VERSION 0.5.0)

set(MRROPE_LLAMA_CACHE "$ENV{XDG_CACHE_HOME}")
if(NOT MRROPE_LLAMA_CACHE)
  set(MRROPE_LLAMA_CACHE "$ENV{HOME}/.cache")
endif()
set(MRROPE_LLAMA_DEFAULT "$ENV{MRROPE_LLAMA_SOURCE}")
if(NOT MRROPE_LLAMA_DEFAULT)
  set(MRROPE_LLAMA_DEFAULT "${MRROPE_LLAMA_CACHE}/mrrope/llama.cpp-${MRROPE_LLAMA_VERSION}")
endif()
set(MRROPE_LLAMA_SOURCE "${MRROPE_LLAMA_DEFAULT}" CACHE PATH
    "Source folder of llama.cpp ${MRROPE_LLAMA_VERSION}")

# ggml's libraries, and beside them a file for each kind of processor (backends.cmake). In the build folder they
# lie as in an installation. llama.cpp takes a ggml that is there; the rest of it goes into the command as always.
file(RELATIVE_PATH MRROPE_BACKENDS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/mrrope)
macro(mrrope_add_backends)
  set(BUILD_SHARED_LIBS ON)
  set(GGML_BACKEND_DL ON)
  set(GGML_CPU_ALL_VARIANTS ON)
  set(GGML_NATIVE OFF)
  set(GGML_LLAMAFILE_DEFAULT ON)  # as llama.cpp sets them
  set(GGML_CUDA_GRAPHS_DEFAULT ON)
  cmake_path(SET CMAKE_RUNTIME_OUTPUT_DIRECTORY NORMALIZE ${PROJECT_BINARY_DIR}/bin/${MRROPE_BACKENDS})
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_subdirectory("${MRROPE_LLAMA_SOURCE}/ggml" "${PROJECT_BINARY_DIR}/llama.cpp/ggml" EXCLUDE_FROM_ALL SYSTEM)
  set(BUILD_SHARED_LIBS OFF)
endmacro()

# A function, so that what is set for llama.cpp stays there.
function(mrrope_add_llama)
  if(SKBUILD AND NOT EXISTS "${MRROPE_LLAMA_SOURCE}/include/llama.h")  # pip install
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/fetch_llama.sh OUTPUT_QUIET)
  endif()
  if(NOT EXISTS "${MRROPE_LLAMA_SOURCE}/include/llama.h")
    message(FATAL_ERROR
      "no llama.cpp source in ${MRROPE_LLAMA_SOURCE}; type tools/fetch_llama.sh to bring it, or "
      "-DMRROPE_LLAMA_SOURCE=FOLDER for a folder with llama.cpp ${MRROPE_LLAMA_VERSION}")
  endif()
  file(READ "${MRROPE_LLAMA_SOURCE}/CMakeLists.txt" text)
  set(version "")
  foreach(part MAJOR MINOR PATCH)
    if(text MATCHES "set\\(LLAMA_VERSION_${part} ([0-9]+)\\)")
      list(APPEND version ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN version "." version)
  if(NOT version STREQUAL MRROPE_LLAMA_VERSION)
    message(FATAL_ERROR
      "${MRROPE_LLAMA_SOURCE} holds llama.cpp '${version}', and only ${MRROPE_LLAMA_VERSION} will "
      "do: the engine reads and writes graph nodes of that version. Type tools/fetch_llama.sh and "
      "leave MRROPE_LLAMA_SOURCE alone")
  endif()

  set(LLAMA_BUILD_COMMON ON)
  foreach(part TESTS TOOLS EXAMPLES SERVER APP UI)
    set(LLAMA_BUILD_${part} OFF)
  endforeach()
  if(MRROPE_DEVELOPER AND EXISTS "${MRROPE_LLAMA_SOURCE}/tools")
    # Only declares targets: the folder is excluded from `all`. tools/gpu leaves the tools away.
    set(LLAMA_BUILD_TOOLS ON)
    set(LLAMA_BUILD_SERVER ON)
    set(LLAMA_USE_PREBUILT_UI OFF)  # nothing is fetched; the server answers without a page
  endif()
  set(LLAMA_OPENSSL ON)  # where the system has it: TLS for its HTTP library, which mrrope uses too
  set(GGML_RPC ON)  # two files: a model spread over machines, for --rpc
  set(LLAMA_SUBPROCESS OFF)
  set(LLAMA_ALL_WARNINGS OFF)
  set(BUILD_SHARED_LIBS OFF)
  # Optimised in every preset, and with its own idea of a standard.
  foreach(kind DEBUG RELWITHDEBINFO)
    set(CMAKE_C_FLAGS_${kind} "${CMAKE_C_FLAGS_RELEASE}")
    set(CMAKE_CXX_FLAGS_${kind} "${CMAKE_CXX_FLAGS_RELEASE}")
  endforeach()
  foreach(name CMAKE_C_STANDARD CMAKE_CXX_STANDARD CMAKE_CXX_STANDARD_REQUIRED
               CMAKE_CXX_EXTENSIONS)
    unset(${name})
  endforeach()
  # Its messages name its files by __FILE__: relative to its folder, not by a path of this machine.
  set(quiet "-w -fmacro-prefix-map=${MRROPE_LLAMA_SOURCE}=llama.cpp")
  set(CMAKE_C_FLAGS "${CMAKE_C_FLAGS} ${quiet}")
  set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} ${quiet}")
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  if(MRROPE_ANY_PROCESSOR)
    mrrope_add_backends()
  endif()
  add_subdirectory("${MRROPE_LLAMA_SOURCE}" "${PROJECT_BINARY_DIR}/llama.cpp"
                   EXCLUDE_FROM_ALL SYSTEM)
  add_subdirectory("${PROJECT_SOURCE_DIR}/cmake/llama" "${PROJECT_BINARY_DIR}/llama_parts")
endfunction()
mrrope_add_llama()

message(STATUS "llama.cpp ${MRROPE_LLAMA_VERSION}: ${MRROPE_LLAMA_SOURCE}")
