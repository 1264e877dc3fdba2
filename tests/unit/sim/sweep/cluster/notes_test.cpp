#include "sim/sweep/cluster/notes.hpp"

#include <gtest/gtest.h>

#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::sweep {
namespace {

Ask sample_ask() {
  Ask ask;
  ask.number = 7;
  ask.host = "node-1";
  ask.version = "0.1.0+abc";
  ask.threads = 4;
  ask.idle = 1;
  ask.spare = 8;
  ask.held = {{12, true}, {1'000'000, false}};
  return ask;
}

TEST(Notes, AnAskArrivesAsItWasSent) {
  const auto note = decode_note(encode(ClusterNote(sample_ask())));
  ASSERT_TRUE(note.has_value());
  const Ask& ask = std::get<Ask>(*note);
  EXPECT_EQ(ask.number, 7U);
  EXPECT_EQ(ask.host, "node-1");
  EXPECT_EQ(ask.version, "0.1.0+abc");
  EXPECT_EQ(ask.threads, 4U);
  EXPECT_EQ(ask.spare, 8U);
  EXPECT_EQ(ask.held, sample_ask().held);
  EXPECT_FALSE(ask.leaving);
}

TEST(Notes, AnAnswerArrivesWithItsRuns) {
  ClusterAnswer answer{
      3, LeaderOrder::kGoOn, "load", {store::sample_record(1).run, store::sample_record(2).run}};
  const auto note = decode_note(encode(ClusterNote(answer)));
  ASSERT_TRUE(note.has_value());
  const ClusterAnswer& read = std::get<ClusterAnswer>(*note);
  ASSERT_EQ(read.runs.size(), 2U);
  EXPECT_EQ(read.sweep, "load");
  EXPECT_EQ(read.runs[1].index, 2U);
  EXPECT_EQ(read.runs[1].key, store::sample_record(2).run.key);
  EXPECT_EQ(read.runs[1].settings, store::sample_record(2).run.settings);
  EXPECT_EQ(read.runs[1].config, store::sample_record(2).run.config);
}

TEST(Notes, ADeliveryArrivesWithTheSameRecord) {
  const auto note =
      decode_note(encode(ClusterNote(Delivery{Duration{5}, store::sample_record(3)})));
  ASSERT_TRUE(note.has_value());
  const Delivery& delivery = std::get<Delivery>(*note);
  EXPECT_EQ(delivery.took, Duration{5});
  EXPECT_EQ(encode(delivery.record), encode(store::sample_record(3)));
}

TEST(Notes, EveryDamagedBitAndEveryMissingByteIsFound) {
  const auto bytes = encode(ClusterNote(sample_ask()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= static_cast<std::uint8_t>(1U << (i % 8));
    EXPECT_FALSE(decode_note(damaged).has_value()) << "byte " << i;
    EXPECT_FALSE(decode_note(std::span(bytes).first(i)).has_value()) << i << " bytes";
  }
}

}  // namespace
}  // namespace bubblesim::sweep
