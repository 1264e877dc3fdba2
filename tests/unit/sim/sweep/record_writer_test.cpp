// Records on their way to a store, which here is a list or refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim/sweep/execute.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

class ListStore final : public store::ResultsStore {
 public:
  Result<std::size_t> add(std::span<const store::RunRecord> records) override {
    ++batches;
    if (full) return fail("results.db", {}, "the disk is full");
    stored += records.size();
    return records.size();
  }
  Result<void> join(const std::string&, std::span<const store::PlannedRun>) override { return {}; }
  Result<std::unordered_set<std::string>> done() override {
    return std::unordered_set<std::string>{};
  }
  Result<std::unordered_set<std::string>> failed() override {
    return std::unordered_set<std::string>{};
  }
  Result<void> each_row(const store::RowFilter&,
                        const std::function<void(const store::StoredRow&)>&) override {
    return {};
  }
  Result<void> each_run(const store::RowFilter&,
                        const std::function<void(const store::StoredRun&)>&) override {
    return {};
  }
  Result<std::optional<observe::LatencyHistogram>> latency(const std::string&, std::uint32_t,
                                                           std::uint32_t) override {
    return std::optional<observe::LatencyHistogram>{};
  }
  Result<void> each_record(const store::RowFilter&,
                           const std::function<void(const store::RunRecord&)>&) override {
    return {};
  }
  Result<void> check_names(const store::RowFilter&) override { return {}; }
  Result<void> check() override { return {}; }

  std::atomic<std::size_t> stored{0};
  std::atomic<std::size_t> batches{0};
  bool full = false;
};

TEST(RecordWriter, StoresEverythingFromAllThreadsInFewBatches) {
  ListStore store;
  RecordWriter writer(store);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&writer] {
      for (int j = 0; j < 100; ++j) writer.add({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(writer.finish());
  EXPECT_EQ(store.stored, 400U);
  EXPECT_LE(store.batches, 3U);
}

TEST(RecordWriter, DoesNotKeepARecordForLong) {
  ListStore store;
  RecordWriter writer(store);
  writer.add({});
  const auto start = std::chrono::steady_clock::now();
  while (store.stored == 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds{10}) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_EQ(store.stored, 1U);  // nobody called finish()
}

TEST(RecordWriter, TellsOfAStoreThatRefusesAndWhatThatCosts) {
  ListStore store;
  store.full = true;
  RecordWriter writer(store);
  writer.add({});
  writer.add({});
  const auto done = writer.finish();
  ASSERT_FALSE(done);
  EXPECT_TRUE(writer.failed());
  EXPECT_THAT(done.error().text(), HasSubstr("the disk is full; 2 finished runs could not be"));
}

}  // namespace
}  // namespace bubblesim::sweep
