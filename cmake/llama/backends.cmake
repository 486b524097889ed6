# The libraries of ggml that an installation has beside the command (MRROPE_ANY_PROCESSOR): `processors` becomes the
# list of targets with code for one kind of processor each, MRROPE_BACKEND_TARGETS all that is installed.
include(CheckCXXCompilerFlag)
set(processors ${GGML_AVAILABLE_BACKENDS})
list(FILTER processors INCLUDE REGEX "^ggml-cpu-")
if(TARGET ggml-cpu-armv8.2_1)
  # ggml has no code for Arm with i8mm and without SVE on Linux, as in virtual machines that hide SVE. That for dot
  # products without arithmetic in f16 becomes it; a processor of that kind gets armv8.0_1.
  get_target_property(flags ggml-cpu-armv8.2_1 COMPILE_OPTIONS)
  string(REPLACE "armv8.2-a+dotprod" "armv8.2-a+dotprod+fp16+i8mm" flags "${flags}")
  set_target_properties(ggml-cpu-armv8.2_1 PROPERTIES OUTPUT_NAME ggml-cpu-armv8.6_0 COMPILE_OPTIONS "${flags}")
  target_compile_definitions(ggml-cpu-armv8.2_1-feats PRIVATE GGML_USE_FP16_VECTOR_ARITHMETIC GGML_USE_MATMUL_INT8)
endif()
# On x86-64 ggml names the instructions only; ordered for the processor too, as by -march=native, dot products of q4_1
# are 15 % faster on Cascade Lake.
set(gcc_skylakex skylake-avx512)
set(gcc_icelake icelake-server)
set(gcc_zen4 znver4)
set(gcc_piledriver bdver2)
set(without)
foreach(target ${processors})
  string(REPLACE "ggml-cpu-" "" name ${target})
  if(DEFINED gcc_${name})
    set(name ${gcc_${name}})
  endif()
  string(MAKE_C_IDENTIFIER "MRROPE_TUNES_${name}" known)
  check_cxx_compiler_flag(-mtune=${name} ${known})
  if(${known})
    target_compile_options(${target} PRIVATE -mtune=${name})
  endif()
  get_target_property(flags ${target} COMPILE_OPTIONS)
  string(REGEX MATCH "-march=[^;]+" march "${flags}")
  string(MAKE_C_IDENTIFIER "MRROPE_COMPILES_${march}" known)
  if(march)
    check_cxx_compiler_flag(${march} ${known})
    if(NOT ${known})  # g++ 12 knows no SME: libggml depends on the target, so it stays, empty
      set_target_properties(${target} PROPERTIES SOURCES "" LINKER_LANGUAGE CXX
                            LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/llama_parts)
      list(APPEND without ${target})
    endif()
  endif()
endforeach()
list(REMOVE_ITEM processors ${without} "")
set(backends ${GGML_AVAILABLE_BACKENDS})  # with those for GPUs, which are not installed
list(REMOVE_ITEM backends ${without} "")
# Names without numbers: a wheel has no links. With names of their own they are never taken for another ggml.
foreach(target ggml ggml-base)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME mrrope-${target})
endforeach()
foreach(target ggml ggml-base ${backends})
  set_property(TARGET ${target} PROPERTY VERSION)
  set_property(TARGET ${target} PROPERTY SOVERSION)
  set_property(TARGET ${target} PROPERTY PUBLIC_HEADER)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
  # Whoever uses them is compiled as with static ones, so that ccache knows the files.
  set_target_properties(${target} PROPERTIES INTERFACE_COMPILE_DEFINITIONS "")
endforeach()
set_property(GLOBAL PROPERTY MRROPE_BACKEND_TARGETS ggml ggml-base ggml-rpc ${processors})
