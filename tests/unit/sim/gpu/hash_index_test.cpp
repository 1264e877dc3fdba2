#include "sim/gpu/hash_index.hpp"

#include <gtest/gtest.h>

namespace bubblesim::gpu {
namespace {

std::uint32_t find_in(const HashIndex& index, std::uint64_t hash, std::uint32_t wanted) {
  return index.find(hash, [wanted](std::uint32_t position) { return position == wanted; });
}

// Hashes from all over 64 bits; every third is that of the one before.
std::uint64_t hash_at(std::uint32_t position) {
  return (position - (position % 3 == 2 ? 1 : 0)) * 0x9e3779b97f4a7c15;
}

TEST(HashIndex, FindsWhatWasAddedHoweverMuchItIs) {
  HashIndex index;
  for (std::uint32_t added = 0; added < 1000; ++added) {
    index.add(hash_at(added), added);
    for (std::uint32_t i = 0; i <= added; i += 7) ASSERT_EQ(find_in(index, hash_at(i), i), i);
    ASSERT_EQ(find_in(index, hash_at(added + 3), added + 3), HashIndex::kNowhere);
  }
}

TEST(HashIndex, PlacesAtTheEndGoOnAtTheBeginning) {
  HashIndex index;
  const std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < 4; ++i) index.add(last, i);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(find_in(index, last, i), i);
  EXPECT_EQ(find_in(index, last, 4), HashIndex::kNowhere);
  index.clear();
  EXPECT_EQ(find_in(index, last, 0), HashIndex::kNowhere);
}

}  // namespace
}  // namespace bubblesim::gpu
