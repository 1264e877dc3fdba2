#include "sim/gpu/by_sm.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace bubblesim::gpu {
namespace {

using Runs = std::vector<std::pair<std::uint32_t, int>>;

Runs runs_of(const BySm<int>& values) {
  Runs runs;
  for (const BySm<int>::Run& run : values.runs()) runs.emplace_back(run.end, run.each);
  return runs;
}

TEST(BySm, NeighboursWithOneValueStandTogether) {
  BySm<int> values(8);
  const auto add = [&values](std::uint32_t begin, std::uint32_t end, int each) {
    BySm<int> parts;
    parts.restart();
    parts.append(begin, 0);
    parts.append(end, each);
    parts.append(8, 0);
    values.change_each(parts, [](int& value, int more) { value += more; });
  };
  EXPECT_EQ(runs_of(values), (Runs{{8, 0}}));
  add(0, 8, 2);
  EXPECT_EQ(runs_of(values), (Runs{{8, 2}}));
  add(3, 5, 1);
  EXPECT_EQ(runs_of(values), (Runs{{3, 2}, {5, 3}, {8, 2}}));
  add(4, 8, 1);
  EXPECT_EQ(runs_of(values), (Runs{{3, 2}, {4, 3}, {5, 4}, {8, 3}}));
  add(4, 5, -1);  // joins both neighbours
  EXPECT_EQ(runs_of(values), (Runs{{3, 2}, {8, 3}}));
  add(0, 3, 1);
  EXPECT_EQ(runs_of(values), (Runs{{8, 3}}));
  add(7, 8, 1);
  add(0, 1, 1);
  EXPECT_EQ(runs_of(values), (Runs{{1, 4}, {7, 3}, {8, 4}}));
  values.clear();
  EXPECT_EQ(runs_of(values), (Runs{{8, 0}}));
}

}  // namespace
}  // namespace bubblesim::gpu
