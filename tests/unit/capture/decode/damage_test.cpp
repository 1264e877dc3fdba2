// Buffers that no CUPTI should give: the decoder stops, counts, and reads nothing beyond the end.
#include <gtest/gtest.h>

#include "capture/record/decode/activity_decoder.hpp"
#include "capture/record/decode/known_devices.hpp"
#include "sim/base/random.hpp"
#include "tests/unit/capture/decode/record_buffer.hpp"

namespace bubblesim::capture {
namespace {

using Outcome = LiveMemory::Outcome;

class DecodingDamage : public testing::Test {
 protected:
  CuptiApi api = walker();
  RecordTables tables;
  RecordedBatch batch;
  ActivityDecoder decoder{api, tables};
};

TEST_F(DecodingDamage, AnUnreadableRecordEndsTheBufferAndIsCounted) {
  std::uint64_t words[8] = {0xFFFF};
  decoder.decode(reinterpret_cast<std::uint8_t*>(words), sizeof(words), batch);
  EXPECT_EQ(decoder.counters().count("cupti_buffers_damaged"), 1U);
}

TEST_F(DecodingDamage, AWalkerThatStandsStillDoesNotHangTheDecoder) {
  api.get_next_record = [](std::uint8_t* buffer, std::size_t, void** record) {
    *record = buffer;
    return cupti::Result::kSuccess;
  };
  std::uint64_t words[32] = {cupti::kKindRuntime};
  decoder.decode(reinterpret_cast<std::uint8_t*>(words), sizeof(words), batch);
  EXPECT_EQ(decoder.counters().count("cupti_buffers_damaged"), 1U);
}

TEST_F(DecodingDamage, EmptyBuffersAreNothing) {
  std::uint64_t word = 0;
  decoder.decode(reinterpret_cast<std::uint8_t*>(&word), 0, batch);
  decoder.decode(nullptr, 100, batch);
  EXPECT_TRUE(decoder.counters().empty());
}

TEST_F(DecodingDamage, RandomRecordsOfEveryKindAreTakenOrCounted) {
  RandomStream random(7, "decoding damage");
  const auto word = [&random] {
    const double kind = random.uniform();
    if (kind < 0.3) return std::uint64_t{0};
    if (kind < 0.5) return ~std::uint64_t{0};
    return static_cast<std::uint64_t>(random.uniform() * 1.8e19);
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> words;
    for (int i = 0; i < 20; ++i) {
      const auto kind = static_cast<std::uint32_t>(random.uniform() * 52);
      const std::size_t stride = stride_of(kind, kVersion13);
      if (stride == 0) continue;
      words.push_back(word() << 32U | kind);
      for (std::size_t place = 8; place < stride; place += 8) {
        const bool pointer =
            (place == 104 && kind == cupti::kKindConcurrentKernel) ||
            (place == 104 && kind == cupti::kKindKernel) ||
            (place == 136 && kind == cupti::kKindDevice);
        words.push_back(pointer ? 0 : word());
      }
    }
    const auto cut = static_cast<std::size_t>(random.uniform() * 100);
    const std::size_t bytes = words.size() * 8;
    decoder.decode(reinterpret_cast<std::uint8_t*>(words.data()), bytes - std::min(cut, bytes),
                   batch);
    for (const traces::DeviceOp& op : batch.ops) {
      ASSERT_GE(to_ns(op.duration), 0);
      ASSERT_GE(to_ns(op.start), 0);
    }
    batch.clear();
  }
  EXPECT_EQ(decoder.counters().count("cupti_buffers_damaged"), 0U);
}

TEST(LiveMemory, IsWhatWasAllocatedAndNotReleased) {
  LiveMemory memory;
  EXPECT_EQ(memory.allocate(0x1000, 100), Outcome::kDone);
  EXPECT_EQ(memory.allocate(0x2000, 50), Outcome::kDone);
  EXPECT_EQ(memory.bytes(), 150U);
  EXPECT_EQ(memory.release(0x1000), Outcome::kDone);
  EXPECT_EQ(memory.bytes(), 50U);
}

TEST(LiveMemory, ReleasesOfEarlierMemoryChangeNothing) {
  LiveMemory memory;
  EXPECT_EQ(memory.release(0x3000), Outcome::kUnknown);
  EXPECT_EQ(memory.bytes(), 0U);
}

TEST(LiveMemory, AnAddressThatIsAllocatedAgainWasReleased) {
  LiveMemory memory;
  EXPECT_EQ(memory.allocate(0x1000, 100), Outcome::kDone);
  EXPECT_EQ(memory.allocate(0x1000, 30), Outcome::kReplaced);
  EXPECT_EQ(memory.bytes(), 30U);
}

TEST(LiveMemory, FollowsAMillionAllocationsAndNoMore) {
  LiveMemory memory;
  for (std::uint64_t i = 0; i < 1U << 20U; ++i) ASSERT_EQ(memory.allocate(i, 1), Outcome::kDone);
  EXPECT_EQ(memory.allocate(1U << 20U, 1), Outcome::kFull);
  EXPECT_EQ(memory.bytes(), 1U << 20U);
}

}  // namespace
}  // namespace bubblesim::capture
