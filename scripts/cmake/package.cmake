# Debian packages: `cpack` in a build folder writes one .deb a component. A component that this build
# leaves out (bubblesim_feature) has no package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bubblesim)
set(CPACK_PACKAGE_VENDOR bubblesim)
set(CPACK_PACKAGE_CONTACT "bubblesim developers <bubblesim@example.invalid>" CACHE STRING
  "Maintainer of the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# bubblesim_package(NAME SUMMARY [DEPENDS ...] [RECOMMENDS ...]): of the component of that name.
macro(bubblesim_package name summary)
  cmake_parse_arguments(ARG "" "" "DEPENDS;RECOMMENDS" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}")
  list(JOIN ARG_DEPENDS ", " CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS)
  list(JOIN ARG_RECOMMENDS ", " CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS)
endmacro()

set(CPACK_COMPONENTS_ALL)
set(same "bubblesim (= ${PROJECT_VERSION})")
bubblesim_package(bubblesim "The program, its configs and schemas, headers for policies"
  RECOMMENDS bubblesim-capture)
bubblesim_package(bubblesim-capture "What jobs on GPUs load: the recorder, and the gate of policies")
if(TARGET bubblesim_python)
  math(EXPR next "${BUBBLESIM_PYTHON_MINOR} + 1")
  bubblesim_package(python3-bubblesim "Traces, runs and policies of bubblesim in Python"
    DEPENDS ${same} "python3 (>= 3.${BUBBLESIM_PYTHON_MINOR})" "python3 (<< 3.${next})"
      python3-numpy
    RECOMMENDS python3-pandas)
  set(CPACK_DEBIAN_PYTHON3-BUBBLESIM_PACKAGE_CONTROL_EXTRA
    "${CMAKE_CURRENT_LIST_DIR}/debian/postinst;${CMAKE_CURRENT_LIST_DIR}/debian/prerm")
endif()
include(CPack)
