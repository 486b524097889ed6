# The CUDA kernels, if nvcc is found; nothing else needs it. nvcc is called directly, so that
# llama.cpp's own use of CUDA stays unchanged. CMAKE_CUDA_ARCHITECTURES names the chips (80, 90, native);
# by default the machine's own, or 8.0 with PTX for all later ones where there is none.
find_program(MRROPE_NVCC nvcc HINTS /usr/local/cuda/bin)
if(MRROPE_NVCC)
  cmake_path(GET MRROPE_NVCC PARENT_PATH CUDAToolkit_ROOT)
  cmake_path(GET CUDAToolkit_ROOT PARENT_PATH CUDAToolkit_ROOT)
  find_package(CUDAToolkit QUIET)
endif()
if(MRROPE_NVCC AND TARGET CUDA::cudart_static)
  set(MRROPE_CUDA ON)
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT architectures AND TARGET ggml-cuda AND MRROPE_ANY_PROCESSOR)  # those of the add-on
    get_target_property(architectures ggml-cuda CUDA_ARCHITECTURES)
  endif()
  if(NOT architectures)
    execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0 AND gpus MATCHES "GPU 0")
      set(architectures native)
    else()
      set(architectures 80)
    endif()
  endif()
  set(MRROPE_NVCC_FLAGS -std=c++20 -O3)
  foreach(architecture ${architectures})
    if(architecture MATCHES "^([0-9]+[a-z]?)")
      set(chip ${CMAKE_MATCH_1})
      list(APPEND MRROPE_NVCC_FLAGS "-gencode=arch=compute_${chip},code=[sm_${chip},compute_${chip}]")
    else()
      list(APPEND MRROPE_NVCC_FLAGS -arch=${architecture})
    endif()
  endforeach()
  message(STATUS "CUDA kernels: on, for ${architectures}")
else()
  set(MRROPE_CUDA OFF)
  message(STATUS "CUDA kernels: off, because no nvcc with its runtime was found")
endif()

# mrrope_cuda_object(VARIABLE FILE.cu): compiles the file; VARIABLE becomes its object.
function(mrrope_cuda_object variable file)
  cmake_path(ABSOLUTE_PATH file NORMALIZE)
  cmake_path(GET file FILENAME name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${MRROPE_NVCC} ${MRROPE_NVCC_FLAGS} -ccbin ${CMAKE_CXX_COMPILER}
            -Xcompiler -fPIC,-ffp-contract=off -I ${PROJECT_SOURCE_DIR}/include
            -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/tests -MD -MF ${object}.d -c ${file} -o ${object}
    DEPENDS ${file}
    DEPFILE ${object}.d
    COMMENT "nvcc ${name}"
    VERBATIM)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()
