// Ids of the recorder's tables, and what goes into the file when.
#include <gmock/gmock.h>

#include "capture/record/store/record_tables.hpp"

namespace bubblesim::capture {
namespace {

using testing::IsEmpty, testing::SizeIs;

TEST(RecordTables, IdsAreInOrderOfFirstUse) {
  RecordTables tables;
  EXPECT_EQ(tables.name("b").value, 0U);
  EXPECT_EQ(tables.name("a").value, 1U);
  EXPECT_EQ(tables.name("b").value, 0U);
  EXPECT_EQ(tables.thread(900).value, 0U);
  EXPECT_EQ(tables.thread(0).value, 1U);
  EXPECT_EQ(tables.thread(900).value, 0U);
}

TEST(RecordTables, HandsOutWhatIsNewOnce) {
  RecordTables tables;
  static_cast<void>(tables.name("a"));
  EXPECT_THAT(tables.take_new().names, SizeIs(1));
  static_cast<void>(tables.name("a"));
  EXPECT_THAT(tables.take_new().names, IsEmpty());
  EXPECT_EQ(tables.name("c").value, 1U);
  EXPECT_EQ(tables.take_new().names[0].text, "c");
}

TEST(RecordTables, KernelNamesAreReadOncePerPointer) {
  RecordTables tables;
  char text[] = "_Z5scalePfi";
  const NameId id = tables.name_at(text);
  text[2] = 'x';
  EXPECT_EQ(tables.name_at(text), id);
  EXPECT_EQ(tables.take_new().names[0].text, "scale(float*, int)");
}

TEST(RecordTables, TwoPointersToOneNameAreOneName) {
  RecordTables tables;
  const char first[] = "gemm";
  const char second[] = "gemm";
  EXPECT_EQ(tables.name_at(first), tables.name_at(second));
}

TEST(RecordTables, WhatIsNoMangledFunctionStaysAsItIs) {
  RecordTables tables;
  for (const char* const name : {"f", "i", "_Zbroken", "cutlass_80_gemm", ""}) {
    static_cast<void>(tables.name_at(name));
    EXPECT_EQ(tables.take_new().names[0].text, name);
  }
  static_cast<void>(tables.name_at(nullptr));
  EXPECT_EQ(tables.take_new().names[0].text, "(unnamed)");
}

TEST(RecordTables, ThousandsOfNamesAndShapesKeepTheirIds) {
  RecordTables tables;
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("kernel" + std::to_string(i));
  for (const int round : {0, 1}) {
    static_cast<void>(round);
    for (std::uint32_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(tables.name_at(names[i].c_str()).value, i);
      ASSERT_EQ(tables.shape({{i + 1, 1, 1}, {128, 1, 1}, 32, 0}).value, i);
    }
  }
}

TEST(RecordTables, EvenAnEmptyShapeIsRecorded) {
  RecordTables tables;
  const traces::LaunchShape empty{{0, 0, 0}, {1, 1, 1}, 0, 0};
  EXPECT_EQ(tables.shape(empty).value, 0U);
  EXPECT_EQ(tables.shape({}).value, 1U);
  EXPECT_THAT(tables.take_new().shapes, SizeIs(2));
}

TEST(RecordTables, AStreamIsKnownByItsContext) {
  RecordTables tables;
  EXPECT_EQ(tables.stream(0, 0, 0).value, 0U);
  EXPECT_EQ(tables.stream(1, 2, 7).value, 1U);
  EXPECT_EQ(tables.stream(1, 3, 7).value, 2U);
  EXPECT_EQ(tables.stream(0, 2, 7).value, 1U);
  EXPECT_EQ(tables.take_new().streams[1].device, 1U);
}

TEST(RecordTables, NamesAndPrioritiesComeBeforeTheFileHasTheEntry) {
  RecordTables tables;
  const ThreadId first = tables.thread(10);
  EXPECT_TRUE(tables.name_thread(first, "main"));
  EXPECT_EQ(tables.take_new().threads[0].name, "main");
  EXPECT_FALSE(tables.name_thread(first, "late"));
  EXPECT_TRUE(tables.name_thread(tables.thread(11), "autograd"));
  EXPECT_EQ(tables.take_new().threads[0].name, "autograd");
  const StreamId stream = tables.stream(0, 1, 7);
  EXPECT_TRUE(tables.describe_stream(stream, -3, traces::StreamKind::kLegacyDefault));
  EXPECT_EQ(tables.take_new().streams[0].priority, -3);
  EXPECT_FALSE(tables.describe_stream(stream, -3, traces::StreamKind::kLegacyDefault));
}

}  // namespace
}  // namespace bubblesim::capture
