# What scripts/test runs: a first stage always, a second with --all or when what it tests has changed.

include_guard()

option(BUBBLESIM_ALL_TESTS "Build and run the second stage of the tests, too" OFF)
set(BUBBLESIM_SINCE "" CACHE STRING
  "Commit: of the second stage, what tests a file that has changed since belongs to the first")

set(changed "")
if(BUBBLESIM_SINCE)
  execute_process(COMMAND git diff --name-only ${BUBBLESIM_SINCE} -- WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE changed OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" changed "${changed}")
endif()
set(BUBBLESIM_CHANGED_FILES "${changed}")
file(WRITE ${PROJECT_BINARY_DIR}/second_stage.txt "")

# bubblesim_stage(RESULT NAME PATHS...): whether tests of the second stage run: all of them do, or one
# of the paths, relative to the source tree, has changed. Else NAME is noted as left out.
function(bubblesim_stage result name)
  set(${result} ${BUBBLESIM_ALL_TESTS} PARENT_SCOPE)
  if(BUBBLESIM_ALL_TESTS)
    return()
  endif()
  foreach(path IN LISTS ARGN)
    foreach(file IN LISTS BUBBLESIM_CHANGED_FILES)
      string(FIND "${file}/" "${path}/" at)
      if(at EQUAL 0)
        set(${result} ON PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  file(APPEND ${PROJECT_BINARY_DIR}/second_stage.txt "${name}\n")
endfunction()
