# Writes what `bubblesim --version` says of the build: a header of texts. After all rooms, which
# declare their optional parts (bubblesim_feature).
bubblesim_feature("sanitizers ${BUBBLESIM_SANITIZE}" "${BUBBLESIM_SANITIZE}")
foreach(list IN ITEMS WITH WITHOUT)
  get_property(names GLOBAL PROPERTY BUBBLESIM_${list})
  list(SORT names CASE INSENSITIVE)
  list(TRANSFORM names STRIP)
  list(JOIN names ", " BUBBLESIM_${list})
endforeach()
set(BUBBLESIM_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/bubblesim_build.hpp @ONLY CONTENT [[
#pragma once
#define BUBBLESIM_VERSION "@PROJECT_VERSION@"
#define BUBBLESIM_COMPILER "@BUBBLESIM_COMPILER@"
#define BUBBLESIM_WITH "@BUBBLESIM_WITH@"
#define BUBBLESIM_WITHOUT "@BUBBLESIM_WITHOUT@"
]])
