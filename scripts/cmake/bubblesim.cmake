# Helpers that every room's CMakeLists.txt uses: one call a library, one call a test.

include_guard()

define_property(TARGET PROPERTY BUBBLESIM_CASTS_BYTES INHERITED BRIEF_DOCS
  "Whether UBSan checks the alignment of pointers in this folder's targets")

# Warnings and sanitizers, linked PRIVATE by every target of the project.
add_library(bubblesim_options INTERFACE)
target_compile_features(bubblesim_options INTERFACE cxx_std_20)
# libstdc++ checks indices and iterators' bounds, in builds for users, too.
target_compile_definitions(bubblesim_options INTERFACE _GLIBCXX_ASSERTIONS)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(bubblesim_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor)
  # GCC 12 warns of overlaps in std::string's own code (its bug 105651), at -O2 and above.
  target_compile_options(bubblesim_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(BUBBLESIM_WARNINGS_AS_ERRORS)
    target_compile_options(bubblesim_options INTERFACE -Werror)
  endif()
endif()
if(BUBBLESIM_SANITIZE)
  # Checks of UBSan that cost half of the compile time and find nothing more: a pointer that is
  # null, has overflowed or leaves its object is a fault that ASan reports when it is used, and
  # nothing here casts down a hierarchy. Only casts of raw bytes can break alignment: rooms that
  # have some set BUBBLESIM_CASTS_BYTES.
  target_compile_options(bubblesim_options INTERFACE
    -fsanitize=${BUBBLESIM_SANITIZE} -fno-sanitize=null,vptr,pointer-overflow,object-size
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:BUBBLESIM_CASTS_BYTES>>>:-fno-sanitize=alignment>
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Under ASan, GCC 12 warns of uninitialised members in std::regex's own code;
  # builds without sanitizers keep the warning.
  target_compile_options(bubblesim_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Programs at a fixed address have no relocations to apply where they start: tests start some
  # thousands, each with the tables that sanitizers keep of every check and global.
  target_link_options(bubblesim_options INTERFACE -fsanitize=${BUBBLESIM_SANITIZE}
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()

# A fast linker where there is one: the program with ASan links in 1.1 s instead of 2.
foreach(linker IN ITEMS mold lld)
  find_program(BUBBLESIM_${linker} ld.${linker})
  if(BUBBLESIM_${linker})
    target_link_options(bubblesim_options INTERFACE -fuse-ld=${linker})
    break()
  endif()
endforeach()

# bubblesim_feature("PostgreSQL" ${PostgreSQL_FOUND}): an optional part, which `bubblesim --version`
# lists as built with or without (scripts/cmake/features.cmake).
function(bubblesim_feature name present)
  if(present)
    set_property(GLOBAL APPEND PROPERTY BUBBLESIM_WITH ${name})
  else()
    set_property(GLOBAL APPEND PROPERTY BUBBLESIM_WITHOUT ${name})
  endif()
endfunction()

# bubblesim_library(NAME room SOURCES a.cpp ... [DEPENDS bubblesim::base ...] [PRIVATE lib ...])
function(bubblesim_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  set(target bubblesim_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(bubblesim::${ARG_NAME} ALIAS ${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS}
    PRIVATE $<BUILD_INTERFACE:bubblesim_options> ${ARG_PRIVATE})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME})
endfunction()

# bubblesim_compile_hot(ROOM): what runs for each kernel. One translation unit, so that it is inlined
# (tests/bench/README.md), and optimised in debug builds too, in which tests simulate most of the time.
# ASan does not watch for uses of a local variable after its scope there: that keeps in memory what
# inlined functions would have in registers, at 2.7 times the cost. Preset `fuzz` watches everywhere.
function(bubblesim_compile_hot room)
  set_target_properties(bubblesim_${room} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(bubblesim_${room} PRIVATE
    $<$<CONFIG:Release>:-O3> $<$<CONFIG:Debug>:-O2> $<$<CONFIG:Debug>:-fno-sanitize-address-use-after-scope>)
endfunction()

# bubblesim_compile_cold(FOLDER): targets of the folder and of those below it are optimised less.
function(bubblesim_compile_cold folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "UTILITY")
      target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Debug>,-O0,-O1>)
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    bubblesim_compile_cold(${inner})
  endforeach()
endfunction()

# bubblesim_suites(ALL SKIPPING SOURCES...): GoogleTest's patterns for the suites of the sources
# named, and for those of sources with cases that skip themselves.
function(bubblesim_suites all skipping)
  set(every "")
  set(some "")
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} suites REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
    list(TRANSFORM suites REPLACE "^(TYPED_)?TEST(_F|_P)?\\(([A-Za-z0-9]+),.*"
      "\\3.*:*/\\3.*:\\3/*")
    list(APPEND every ${suites})
    file(STRINGS ${source} skips REGEX "GTEST_SKIP" LIMIT_COUNT 1)
    if(skips)
      list(APPEND some ${suites})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES every)
  list(REMOVE_DUPLICATES some)
  set(${all} "${every}" PARENT_SCOPE)
  set(${skipping} "${some}" PARENT_SCOPE)
endfunction()

# bubblesim_test(NAME unit_base SOURCES a_test.cpp ... DEPENDS bubblesim::base ... [SINGLE] [SHARDS 3]
#   [COST 100])
# One executable and one CTest case: CTest spends a tenth of a second on each of its cases, and most
# cases of GoogleTest take a hundredth. Of a suite with cases that skip themselves, each is a CTest
# case of its own, so that the summary says what was skipped; SINGLE forbids that. SHARDS: so many
# CTest cases in place of one, NAME_1 ..., which share the cases of GoogleTest (its own sharding).
# COST: about how many seconds each of its CTest cases takes. CTest starts the longest first, so that
# no core waits for one at the end; of its own it knows that only where it has run them before.
function(bubblesim_test)
  if(NOT TARGET bubblesim_test_scratch)
    add_library(bubblesim_test_scratch OBJECT ${PROJECT_SOURCE_DIR}/tests/scratch_folder.cpp)
    target_link_libraries(bubblesim_test_scratch PRIVATE bubblesim_options)
  endif()
  cmake_parse_arguments(ARG "SINGLE" "NAME;SHARDS;COST" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} bubblesim_options
    bubblesim_test_scratch GTest::gtest_main GTest::gmock)
  target_compile_definitions(${ARG_NAME} PRIVATE
    BUBBLESIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    BUBBLESIM_DATA_DIR="${BUBBLESIM_DATA_DIR}")
  # What a test itself does is short, but for laws, which run references of their own: optimising it
  # costs half of its compile time (what_if_test.cpp 9.4 to 5.7 s of CPU, run_test.cpp 11.7 to 6.0).
  if(NOT ARG_NAME MATCHES "^(laws|validation)_")
    target_compile_options(${ARG_NAME} PRIVATE -O0)
  endif()
  bubblesim_suites(all skipping ${ARG_SOURCES})
  if(NOT all)
    message(FATAL_ERROR "${ARG_NAME}: found no TEST, TEST_F, TEST_P or TYPED_TEST in ${ARG_SOURCES}")
  endif()
  if(ARG_SINGLE)
    set(skipping "")
  endif()
  list(JOIN skipping ":" skipping_filter)
  if(NOT "${all}" STREQUAL "${skipping}")
    set(shards 1)
    if(ARG_SHARDS)
      set(shards ${ARG_SHARDS})
    endif()
    foreach(shard RANGE 1 ${shards})
      set(test ${ARG_NAME})
      if(shards GREATER 1)
        set(test ${ARG_NAME}_${shard})
      endif()
      math(EXPR index "${shard} - 1")
      add_test(NAME ${test}
               COMMAND ${ARG_NAME} --gtest_brief=1 --gtest_filter=*-${skipping_filter})
      set_tests_properties(${test} PROPERTIES TIMEOUT 600 COST ${ARG_COST}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endforeach()
  endif()
  if(skipping)
    # Cases are listed when CTest starts: a program that cannot start fails as a test, not the build.
    gtest_discover_tests(${ARG_NAME} TEST_PREFIX "${ARG_NAME}." TEST_FILTER ${skipping_filter}
      DISCOVERY_TIMEOUT 120 DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600 COST ${ARG_COST})
  endif()
endfunction()

# bubblesim_page(NAME name HTML file STYLES files SCRIPTS files OUTPUT variable)
# A header bubblesim_NAME.hpp with the page as bubblesim::report::NAME_files::kPage, made when one of
# its files changes; its path is put into the variable. Files are those of sim/report/page unless
# their path is absolute.
function(bubblesim_page)
  cmake_parse_arguments(ARG "" "NAME;HTML;OUTPUT" "STYLES;SCRIPTS" ${ARGN})
  set(maker ${PROJECT_SOURCE_DIR}/scripts/cmake/embed_page.cmake)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/bubblesim_${ARG_NAME}.hpp)
  foreach(list IN ITEMS STYLES SCRIPTS)
    set(${list} "")
    foreach(file IN LISTS ARG_${list})
      get_filename_component(file ${file} ABSOLUTE
                             BASE_DIR ${PROJECT_SOURCE_DIR}/sim/report/page)
      list(APPEND ${list} ${file})
    endforeach()
    list(JOIN ${list} "," ${list}_joined)
  endforeach()
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DHTML=${ARG_HTML} -DSTYLES=${STYLES_joined}
            -DSCRIPTS=${SCRIPTS_joined} -DNAMESPACE=${ARG_NAME}_files -DOUTPUT=${header} -P ${maker}
    DEPENDS ${ARG_HTML} ${STYLES} ${SCRIPTS} ${maker} VERBATIM)
  set(${ARG_OUTPUT} ${header} PARENT_SCOPE)
endfunction()
