# The library with its CMake package and pkg-config file; then the command with its manual, and the
# bundled model and texts that `demo` and the evaluations use. The components (command, library,
# development) are the packages of package.cmake.
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS mrrope EXPORT mrropeTargets FILE_SET HEADERS
        LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(EXPORT mrropeTargets NAMESPACE mrrope:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mrrope)

if(MRROPE_CUDA)
  install(TARGETS mrrope_cuda EXPORT mrropeCudaTargets
          LIBRARY COMPONENT library NAMELINK_COMPONENT development)
  install(EXPORT mrropeCudaTargets NAMESPACE mrrope::
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mrrope)
endif()

configure_file(${CMAKE_CURRENT_LIST_DIR}/mrropeConfig.cmake.in
               ${PROJECT_BINARY_DIR}/mrropeConfig.cmake COPYONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mrropeConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mrropeConfig.cmake
              ${PROJECT_BINARY_DIR}/mrropeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mrrope)

# Relative to its own place, so that `cmake --install --prefix` and moved folders work.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/mrrope.pc.in ${PROJECT_BINARY_DIR}/mrrope.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mrrope.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(MRROPE_LIBRARY_ONLY)
  return()
endif()

# A wheel holds the components command and python (pyproject.toml).
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME command)
install(TARGETS mrrope_command)
if(MRROPE_ANY_PROCESSOR)
  get_property(backends GLOBAL PROPERTY MRROPE_BACKEND_TARGETS)
  install(TARGETS ${backends} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mrrope)
  set_target_properties(mrrope_command PROPERTIES INSTALL_RPATH "$ORIGIN/${MRROPE_BACKENDS}")
endif()
install(FILES ${PROJECT_SOURCE_DIR}/models/mrrope-tiny.gguf
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mrrope/models)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/texts DESTINATION ${CMAKE_INSTALL_DATADIR}/mrrope/data)
install(TARGETS mrrope_c LIBRARY DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL)

# The command itself writes the man pages and the completions, from the table behind --help. Each verb that
# `mrrope help` names has a page.
set(manual ${PROJECT_BINARY_DIR}/share)
set(verb_pages)
set(write_verb_pages)
foreach(verb inspect models plan chat generate eval export theory report tune serve demo)
  list(APPEND verb_pages ${manual}/mrrope-${verb}.1)
  list(APPEND write_verb_pages
       COMMAND mrrope_command --generate man-${verb} > ${manual}/mrrope-${verb}.1)
endforeach()
add_custom_command(
  OUTPUT ${manual}/mrrope.1 ${verb_pages} ${manual}/mrrope.bash ${manual}/_mrrope ${manual}/mrrope.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
  COMMAND mrrope_command --generate man > ${manual}/mrrope.1
  ${write_verb_pages}
  COMMAND mrrope_command --generate bash > ${manual}/mrrope.bash
  COMMAND mrrope_command --generate zsh > ${manual}/_mrrope
  COMMAND mrrope_command --generate fish > ${manual}/mrrope.fish
  DEPENDS mrrope_command)
add_custom_target(mrrope_manual ALL DEPENDS ${manual}/mrrope.1)
install(FILES ${manual}/mrrope.1 ${verb_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/mrrope.bash RENAME mrrope
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual}/_mrrope DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/mrrope.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mrrope)
