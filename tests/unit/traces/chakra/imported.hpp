// A trace from a Chakra file that can be imported; it keeps what imported traces promise.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/chakra_import.hpp"

namespace bubblesim::traces {

inline RankTrace imported(const std::string& bytes) {
  auto trace = import_chakra_bytes(bytes, "job.0.et");
  EXPECT_TRUE(trace) << trace.error().text();
  if (!trace) return {};
  EXPECT_EQ(broken_promise(*trace), "");
  return std::move(*trace);
}

}  // namespace bubblesim::traces
