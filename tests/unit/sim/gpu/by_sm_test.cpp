#include "sim/gpu/by_sm.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace bubblesim::gpu {
namespace {

using Runs = std::vector<std::pair<std::uint32_t, int>>;

Runs runs_of(const BySm<int>& values) {
  Runs runs;
  for (const BySm<int>::Run& run : values.runs()) runs.emplace_back(run.end, run.value);
  return runs;
}

BySm<int> part(std::uint32_t begin, std::uint32_t end, int each) {
  BySm<int> values;
  values.restart();
  values.append(begin, 0);
  values.append(end, each);
  values.append(8, 0);
  return values;
}

TEST(BySm, NeighboursWithOneValueStandTogether) {
  BySm<int> values(8);
  const auto add = [&values](std::uint32_t begin, std::uint32_t end, int each) {
    const BySm<int> before = values;
    values.become_changed(before, part(begin, end, each),
                          [](int& value, int more) { value += more; });
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
}

TEST(BySm, EqualValuesHaveOneHash) {
  BySm<int> values(8);
  values.become_changed(BySm<int>(8), part(2, 5, 3), [](int& value, int more) { value = more; });
  EXPECT_EQ(values, part(2, 5, 3));
  EXPECT_EQ(values.hash(), part(2, 5, 3).hash());
  EXPECT_NE(values.hash(), part(2, 5, 4).hash());
  EXPECT_NE(values.hash(), part(2, 6, 3).hash());
}

}  // namespace
}  // namespace bubblesim::gpu
