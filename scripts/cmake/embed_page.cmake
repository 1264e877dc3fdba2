# Run at build time (cmake -P): a page as a C++ header: its markup with the styles and scripts in it,
# and their hashes, which its content security policy names.
# HTML: the file; STYLES, SCRIPTS: files in order, separated by commas; NAMESPACE: inside of
# bubblesim::report; OUTPUT: the header.

# The base64 of a hexadecimal text of whole bytes.
function(base64_of hex result)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" length)
  set(text "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${hex}000000" ${at} 6 part)
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR place "(0x${part} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${place} 1 digit)
      string(APPEND text "${digit}")
    endforeach()
    math(EXPR at "${at} + 6")
  endwhile()
  # 32 bytes of SHA-256 leave one byte of the last three over.
  string(LENGTH "${text}" length)
  math(EXPR length "${length} - 1")
  string(SUBSTRING "${text}" 0 ${length} text)
  set(${result} "${text}=" PARENT_SCOPE)
endfunction()

function(literal_of name text)
  string(FIND "${text}" ")page\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${name}: found )page\", which ends the literal that holds it")
  endif()
  # GCC takes literals of any length; pieces keep within what other compilers take.
  set(literal " \"\"")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 12000 part)
    string(APPEND literal "\n    R\"page(${part})page\"")
    math(EXPR at "${at} + 12000")
  endwhile()
  set(literals "inline constexpr std::string_view ${name} =${literal};\n" PARENT_SCOPE)
endfunction()

set(script "(() => {\n'use strict';\n")
string(REPLACE "," ";" scripts "${SCRIPTS}")
foreach(file IN LISTS scripts)
  file(READ "${file}" part)
  string(APPEND script "${part}")
endforeach()
string(APPEND script "})();\n")
set(style "")
string(REPLACE "," ";" styles "${STYLES}")
foreach(file IN LISTS styles)
  file(READ "${file}" part)
  string(APPEND style "${part}")
endforeach()
file(READ "${HTML}" page)
foreach(part IN ITEMS style script)
  string(FIND "${${part}}" "{{" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${HTML}: its ${part} has {{, which marks what the program fills in")
  endif()
  string(SHA256 hex "${${part}}")
  base64_of(${hex} hash)
  string(REPLACE "{{${part}_hash}}" "sha256-${hash}" page "${page}")
  string(REPLACE "{{${part}}}" "${${part}}" page "${page}")
endforeach()
literal_of(kPage "${page}")
file(WRITE "${OUTPUT}" "// Made by scripts/cmake/embed_page.cmake.
#pragma once
#include <string_view>
namespace bubblesim::report::${NAMESPACE} {
${literals}}  // namespace bubblesim::report::${NAMESPACE}
")
