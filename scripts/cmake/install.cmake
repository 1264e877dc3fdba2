# What `cmake --install` puts where: the program with its data, and what a policy outside of the
# tree is built with. Includes keep their paths: "sim/policy/policy.hpp" below include/bubblesim.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/bubblesim)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/bubblesim)

# Libraries that others link hold code, not this compiler's intermediate form.
set_target_properties(bubblesim_base bubblesim_policy bubblesim_policy_testing PROPERTIES
  INTERPROCEDURAL_OPTIMIZATION OFF)
install(TARGETS bubblesim bubblesim_base bubblesim_policy bubblesim_policy_testing
  EXPORT bubblesimTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${header_folder})
install(EXPORT bubblesimTargets NAMESPACE bubblesim:: DESTINATION ${package_folder})

# Of sim/base what the contract includes, and what policies use besides; none of it needs more than
# tl::expected.
set(base_headers check counters ids mig_geometry nearest quantities result time units)
list(TRANSFORM base_headers REPLACE "(.+)" "sim/base/\\1.hpp")
install(FILES ${base_headers} DESTINATION ${header_folder}/sim/base)
install(DIRECTORY sim/policy/ DESTINATION ${header_folder}/sim/policy
  FILES_MATCHING PATTERN "*.hpp" PATTERN "launch_description.hpp" EXCLUDE
  PATTERN "parameter_check.hpp" EXCLUDE)
install(FILES sim/program/kinds.hpp DESTINATION ${header_folder}/sim/program)
install(FILES sim/plugin/policy_library.hpp DESTINATION ${header_folder}/sim/plugin)

# The program finds them beside itself (sim/app/main.cpp); configs/runs name the samples.
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/bubblesim)
install(DIRECTORY traces/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/bubblesim/traces)

# What the program says of itself (sim/app/CMakeLists.txt).
if(TARGET bubblesim_documents)
  set(documents ${PROJECT_BINARY_DIR}/documents)
  install(DIRECTORY ${documents}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${documents}/bubblesim
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${documents}/_bubblesim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${documents}/bubblesim.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(scripts/cmake/bubblesimConfig.cmake.in
  ${PROJECT_BINARY_DIR}/bubblesimConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before version 1 any change of the second number may break.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bubblesimConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bubblesimConfig.cmake
  ${PROJECT_BINARY_DIR}/bubblesimConfigVersion.cmake scripts/cmake/bubblesim_policy.cmake
  DESTINATION ${package_folder})
