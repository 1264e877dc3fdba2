// A JSON document from a text that a test wrote.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "sim/base/json_reader.hpp"

namespace bubblesim {

inline JsonDocument parsed(std::string_view text) {
  auto document = JsonDocument::parse(text, "run.json");
  EXPECT_TRUE(document) << document.error().front().text();
  return std::move(*document);
}

}  // namespace bubblesim
