# Debian packages, made by `./run package`: mrrope (the command with its manual, model and texts),
# libmrrope0 (the library), libmrrope-dev (headers, CMake package, pkg-config file). Their library is
# shared and their command runs on every processor of its kind, so they are built by the preset
# "package"; GGML_NATIVE, BUILD_SHARED_LIBS and MRROPE_NVCC decide that.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mrrope)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CONTACT "mrrope maintainers <maintainers@mrrope.invalid>" CACHE STRING
    "Maintainer of the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME mrrope)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libmrrope0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmrrope-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libmrrope0 (= ${PROJECT_VERSION}-1), libhwy-dev")

set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/bin/${MRROPE_BACKENDS})

# Extended descriptions: what the package holds.
set(CPACK_COMPONENT_COMMAND_DESCRIPTION
    "The command mrrope, its man page and completions, and a small model with texts.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The shared library: plans, ladders and rotation.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers for C and C++, the CMake package and the pkg-config file of libmrrope0.")

# Where Debian looks for the licences of a package.
foreach(package command:mrrope library:libmrrope0 development:libmrrope-dev)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  install(FILES ${PROJECT_SOURCE_DIR}/NOTICE RENAME copyright COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
