# What tests in Python need: the built package on Python's way, and under sanitizers their runtime.
include_guard()

# bubblesim_python_environment(RESULT): a list for the property ENVIRONMENT of such tests, with
# PYTHONPATH of the package, BUBBLESIM_SOURCE, and BUBBLESIM_PROGRAM where there is the program.
function(bubblesim_python_environment result)
  set(environment
    "PYTHONPATH=$<PATH:GET_PARENT_PATH,$<TARGET_FILE_DIR:bubblesim_python>>"
    "PYTHONDONTWRITEBYTECODE=1"
    "BUBBLESIM_SOURCE=${PROJECT_SOURCE_DIR}")
  if(TARGET bubblesim)
    list(APPEND environment "BUBBLESIM_PROGRAM=$<TARGET_FILE:bubblesim>")
  endif()
  if(BUBBLESIM_SANITIZE)
    # Python itself has no sanitizers: their runtime is loaded first, and leaks, which Python has
    # many of, are not looked for. libstdc++ too: ASan looks for __cxa_throw when it starts.
    set(preload "")
    string(REPLACE "," ";" sanitizers "${BUBBLESIM_SANITIZE}")
    list(TRANSFORM sanitizers REPLACE "^address$" "asan")
    list(TRANSFORM sanitizers REPLACE "^undefined$" "ubsan")
    list(TRANSFORM sanitizers REPLACE "^thread$" "tsan")
    foreach(name IN LISTS sanitizers ITEMS stdc++)
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${name}.so
        OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
      list(APPEND preload ${file})
    endforeach()
    list(JOIN preload ":" preload)
    list(APPEND environment "LD_PRELOAD=${preload}" "ASAN_OPTIONS=detect_leaks=0")
  endif()
  set(${result} "${environment}" PARENT_SCOPE)
endfunction()

# bubblesim_python_lacks(RESULT WHAT MODULES NEEDS): whether BUBBLESIM_PYTHON cannot import MODULES;
# then says that the tests of WHAT are left out, for they need the packages NEEDS.
function(bubblesim_python_lacks result what modules needs)
  execute_process(COMMAND ${BUBBLESIM_PYTHON} -c "import ${modules}"
    RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing)
    message(STATUS "${what}: tests are left out (need ${needs})")
  endif()
  set(${result} ${missing} PARENT_SCOPE)
endfunction()
