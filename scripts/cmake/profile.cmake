# Profile-guided optimisation. BUBBLESIM_PROFILE is empty, or
#   record: programs note beside their object files which ways they go (*.gcda), and
#   use:    the same build folder, configured anew, compiles for the ways that were noted.
# scripts/build-optimised does both; the presets are `optimised-record` and `optimised`.
set(BUBBLESIM_PROFILE "" CACHE STRING "Profile-guided optimisation: empty, record or use")
set_property(CACHE BUBBLESIM_PROFILE PROPERTY STRINGS "" record use)

if(BUBBLESIM_PROFILE STREQUAL "")
  return()
elseif(NOT BUBBLESIM_PROFILE MATCHES "^(record|use)$")
  message(FATAL_ERROR "BUBBLESIM_PROFILE is '${BUBBLESIM_PROFILE}'; allowed: empty, record, use")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "BUBBLESIM_PROFILE needs GCC, found ${CMAKE_CXX_COMPILER_ID}")
endif()

if(BUBBLESIM_PROFILE STREQUAL "record")
  set(options -fprofile-generate -fprofile-update=atomic)  # runs have threads
  target_link_options(bubblesim_options INTERFACE -fprofile-generate)
else()
  # What the recorded runs did not touch is optimised as ever, not for size.
  set(options -fprofile-use -fprofile-partial-training -Wno-missing-profile)
endif()
target_compile_options(bubblesim_options INTERFACE ${options})
