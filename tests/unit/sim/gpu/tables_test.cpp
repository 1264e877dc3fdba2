#include <gtest/gtest.h>

#include "sim/gpu/hash_index.hpp"
#include "sim/gpu/value_table.hpp"

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

using Table = ValueTable<std::uint32_t>;

// Of 8 SMs, the first ones have 1.
Table::Value first_sms(std::uint32_t sms) {
  Table::Value value;
  value.restart();
  value.append(sms, 1);
  value.append(8, 0);
  return value;
}

TEST(ValueTable, EqualValuesHaveOneId) {
  Table table(8);
  EXPECT_EQ(table.id_of(first_sms(0)), Table::Id{});
  const Table::Id three = table.id_of(first_sms(3));
  const Table::Id five = table.id_of(first_sms(5));
  EXPECT_NE(three, five);
  EXPECT_EQ(table.id_of(first_sms(3)), three);
  EXPECT_EQ(table[three], first_sms(3));
  EXPECT_EQ(table[five], first_sms(5));
  EXPECT_EQ(table.size(), 3U);
}

TEST(ValueTable, ForgetsWhatNobodyKeeps) {
  Table table(8);
  Table::Id kept, left;
  table.replace(kept, table.id_of(first_sms(3)));
  table.replace(left, table.id_of(first_sms(5)));
  table.replace(left, Table::Id{});
  table.forget_others();
  EXPECT_EQ(table.size(), 2U);  // `kept`, and that of which nothing has been said
  EXPECT_EQ(table[kept], first_sms(3));
  EXPECT_EQ(table.id_of(first_sms(3)), kept);
  EXPECT_EQ(table.id_of(first_sms(0)), Table::Id{});
  EXPECT_EQ(table[table.id_of(first_sms(6))], first_sms(6));
  EXPECT_EQ(table.size(), 3U);
  table.replace(kept, Table::Id{});
  table.forget_others();
  EXPECT_EQ(table.size(), 1U);
}

TEST(ValueTable, IsNoLargerForWhatCameAndWent) {
  Table table(8);
  for (std::uint32_t round = 0; round < 100; ++round) {
    Table::Id kept;
    for (std::uint32_t sms = 0; sms <= 8; ++sms) {
      table.replace(kept, table.id_of(first_sms(sms)));
      EXPECT_LT(kept.index(), 9U);
    }
    table.replace(kept, Table::Id{});
    table.forget_others();
    EXPECT_EQ(table.size(), 1U);
  }
}

}  // namespace
}  // namespace bubblesim::gpu
