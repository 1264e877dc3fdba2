# Run at every build (cmake -P): writes what the sources are, so that results can say what made
# them. SOURCE: the tree; OUTPUT: a header, touched only when it changes.
#
# BUBBLESIM_COMMIT: the last commit that changed what the program is made of; empty without git.
# BUBBLESIM_CHANGED: 1 if there are changes to it that are in no commit.
set(paths sim policies traces capture CMakeLists.txt scripts/cmake)
set(commit "")
set(changed 0)
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} log -1 --format=%h --abbrev=12 -- ${paths}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain -- ${paths}
    OUTPUT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT status STREQUAL "")
    set(changed 1)
  endif()
endif()
set(text "#define BUBBLESIM_COMMIT \"${commit}\"\n#define BUBBLESIM_CHANGED ${changed}\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
