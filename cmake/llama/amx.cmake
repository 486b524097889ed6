# mrrope_amx_options(RESULT COMPILER [FLAGS...]): the options that ggml-cpu/amx/mmq.cpp needs with this compiler
# and these flags. _tile_loadconfig of g++ 12 declares 8 of its 64 bytes as input, so the optimiser drops the
# stores of rows and columns, and the first product ends in an illegal instruction. The code itself is looked
# at, not the version. Where that optimisation cannot be switched off, -mno-amx-int8 leaves AMX out, for all of
# ggml-cpu.
function(mrrope_amx_options result compiler)
  set(${result} "" PARENT_SCOPE)
  mrrope_tile_config(plain ${compiler} ${ARGN})
  if(NOT plain STREQUAL "dropped")
    return()  # right, or not an x86-64 compiler with AMX
  endif()
  set(remedy -fno-tree-dse -fno-dse)
  mrrope_tile_config(mended ${compiler} ${ARGN} ${remedy})
  if(NOT mended STREQUAL "stored")
    set(remedy -mno-amx-int8)
  endif()
  set(${result} ${remedy} PARENT_SCOPE)
endfunction()

# stored, dropped, or none if the compiler knows no tiles.
function(mrrope_tile_config result compiler)
  foreach(rows 8 16)
    execute_process(
      COMMAND ${compiler} ${ARGN} -mamx-tile -DROWS=${rows} -S -o - ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tile_config.cpp
      OUTPUT_VARIABLE code_${rows} ERROR_QUIET RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      set(${result} none PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(code_8 STREQUAL code_16)
    set(${result} dropped PARENT_SCOPE)
  else()
    set(${result} stored PARENT_SCOPE)
  endif()
endfunction()
