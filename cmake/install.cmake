# The command, the library, its CMake package and its pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS mrrope EXPORT mrropeTargets FILE_SET HEADERS)
install(EXPORT mrropeTargets NAMESPACE mrrope:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mrrope)

if(MRROPE_CUDA)
  install(TARGETS mrrope_cuda EXPORT mrropeCudaTargets)
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

configure_file(${CMAKE_CURRENT_LIST_DIR}/mrrope.pc.in ${PROJECT_BINARY_DIR}/mrrope.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mrrope.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(MRROPE_LIBRARY_ONLY)
  return()
endif()

install(TARGETS mrrope_command)

# Man page and completions are written by the command itself, from the table behind --help.
set(manual ${PROJECT_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${manual}/mrrope.1 ${manual}/mrrope.bash ${manual}/_mrrope ${manual}/mrrope.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
  COMMAND mrrope_command --generate man > ${manual}/mrrope.1
  COMMAND mrrope_command --generate bash > ${manual}/mrrope.bash
  COMMAND mrrope_command --generate zsh > ${manual}/_mrrope
  COMMAND mrrope_command --generate fish > ${manual}/mrrope.fish
  DEPENDS mrrope_command)
add_custom_target(mrrope_manual ALL DEPENDS ${manual}/mrrope.1)
install(FILES ${manual}/mrrope.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/mrrope.bash RENAME mrrope
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual}/_mrrope DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual}/mrrope.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
