// A JSON document from a text that a test wrote.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "sim/base/json_reader.hpp"
#include "tests/fault.hpp"

namespace bubblesim {

inline JsonDocument parsed(std::string_view text) {
  return must(JsonDocument::parse(text, "run.json"));
}

}  // namespace bubblesim
