// Imports a Kineto text, expecting success and a trace that keeps the invariants of imports.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {

inline RankTrace imported(const std::string& text) {
  auto trace = import_kineto_text(text, "t.json");
  EXPECT_TRUE(trace.has_value()) << (trace ? "" : trace.error().text());
  if (!trace) return {};
  EXPECT_EQ(broken_promise(*trace), "");
  return std::move(*trace);
}

}  // namespace bubblesim::traces
