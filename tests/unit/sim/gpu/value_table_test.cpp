#include "sim/gpu/value_table.hpp"

#include <gtest/gtest.h>

namespace bubblesim::gpu {
namespace {

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
