# bubblesim_policy(NAME my_policy SOURCES my_policy.cpp ... [TESTS my_policy_test.cpp ...])
#
# A shared library of policies, lib<NAME>.so, for `bubblesim run --policy-library`. With TESTS, the
# program <NAME>_test (GoogleTest) of both, as a CTest; and if the program bubblesim is there, the
# CTest <NAME>_loads, which has it load the library and list the policy NAME.
include_guard()

function(bubblesim_policy)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;TESTS" ${ARGN})
  if(NOT ARG_NAME OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bubblesim_policy(NAME name SOURCES files [TESTS files]): "
      "found name '${ARG_NAME}', sources '${ARG_SOURCES}', and '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  add_library(${ARG_NAME} MODULE ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE bubblesim::policy)
  # What a library shares with the program goes through the one exported constant.
  set_target_properties(${ARG_NAME} PROPERTIES
    PREFIX lib CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  include(GNUInstallDirs)
  install(TARGETS ${ARG_NAME} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/bubblesim/policies)
  if(NOT ARG_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  add_executable(${ARG_NAME}_test ${ARG_SOURCES} ${ARG_TESTS})
  target_link_libraries(${ARG_NAME}_test PRIVATE bubblesim::policy_testing GTest::gtest_main)
  add_test(NAME ${ARG_NAME}_test COMMAND ${ARG_NAME}_test)
  if(TARGET bubblesim::bubblesim)
    add_test(NAME ${ARG_NAME}_loads COMMAND bubblesim::bubblesim policies ${ARG_NAME}
      --policy-library $<TARGET_FILE:${ARG_NAME}>)
  endif()
endfunction()
