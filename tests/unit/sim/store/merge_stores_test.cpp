#include "sim/store/merge_stores.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "sim/store/results_store.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MergeStores : public testing::Test {
 protected:
  MergeStores() {
    std::string pattern = (fs::temp_directory_path() / "merge_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~MergeStores() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string store(const std::string& name, const std::vector<RunRecord>& records) const {
    EXPECT_TRUE((*open_store(at(name), StoreAccess::kWrite))->add(records));
    return at(name);
  }
  /// All records, as bytes, in the store's order.
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> content(const std::string& name) const {
    std::vector<std::vector<std::uint8_t>> all;
    EXPECT_TRUE((*open_store(at(name), StoreAccess::kRead))
                    ->each_record([&](const RunRecord& record) { all.push_back(encode(record)); }));
    return all;
  }
  [[nodiscard]] MergeCount merge(std::vector<std::string> inputs, const std::string& out) const {
    const auto merged = merge_stores(inputs, at(out), nullptr);
    EXPECT_TRUE(merged) << merged.error().text();
    return merged.value_or(MergeCount{});
  }

  fs::path folder_;
};

TEST_F(MergeStores, AnyOrderGivesTheSameContentAndAgainChangesNothing) {
  RunRecord later = sample_record(1);
  later.host = "node2";
  later.finished_unix_ns += 100;
  std::vector<std::string> inputs{
      store("a", {sample_record(0), later, failed_record(2, "early")}),
      store("b", {sample_record(1), sample_record(2), failed_record(3, "bad")}),
      store("c", {sample_record(4), sample_record(1)})};
  const MergeCount first = merge(inputs, "abc");
  EXPECT_EQ(first.runs, 5U);
  EXPECT_EQ(first.stored, 5U);
  const auto expected = content("abc");
  ASSERT_EQ(expected.size(), 5U);
  EXPECT_EQ(expected[1], encode(sample_record(1))) << "the first that finished";
  EXPECT_EQ(expected[2], encode(sample_record(2))) << "done before failed";
  std::reverse(inputs.begin(), inputs.end());
  EXPECT_EQ(merge(inputs, "cba").stored, 5U);
  EXPECT_EQ(content("cba"), expected);
  EXPECT_EQ(merge(inputs, "cba").stored, 0U);
  EXPECT_EQ(content("cba"), expected);
}

TEST_F(MergeStores, ARunBelongsToEverySweepThatItBelongsToInSomeInput) {
  const auto record_of = [](const std::string& sweep, std::uint64_t number, std::uint64_t index) {
    RunRecord record = sample_record(number);
    record.sweep = sweep;
    record.run.index = index;
    return record;
  };
  RunRecord later = record_of("b", 1, 7);
  later.finished_unix_ns += 100;
  std::vector<std::string> inputs{store("one", {sample_record(0), sample_record(1)}),
                                  store("two", {later, record_of("b", 2, 8)}),
                                  store("three", {record_of("c", 2, 0)})};
  const PlannedRun run = record_of("d", 0, 9).run;
  ASSERT_TRUE((*open_store(at("one"), StoreAccess::kWrite))->join("d", {&run, 1}));
  const auto lines = [&](const std::string& name) {
    std::vector<std::string> found;
    EXPECT_TRUE((*open_store(at(name), StoreAccess::kRead))
                    ->each_run({}, [&](const StoredRun& stored) {
                      found.push_back(stored.sweep + std::to_string(stored.run.index) + " " +
                                      stored.run.key.back() + " " + stored.stored_by);
                    }));
    return found;
  };
  EXPECT_EQ(merge(inputs, "out").stored, 3U);
  const std::vector<std::string> expected{"b7 1 load", "b8 2 b",    "c0 2 b",
                                          "d9 0 load", "load0 0 load", "load1 1 load"};
  EXPECT_EQ(lines("out"), expected);
  std::reverse(inputs.begin(), inputs.end());
  EXPECT_EQ(merge(inputs, "reversed").stored, 3U);
  EXPECT_EQ(lines("reversed"), expected);
  EXPECT_EQ(merge({at("out")}, "reversed").stored, 0U);
  EXPECT_EQ(lines("reversed"), expected);
}

TEST_F(MergeStores, IntoOneOfTheInputsKeepsWhatItHas) {
  const std::string a = store("a", {sample_record(0)});
  const std::string b = store("b", {sample_record(1)});
  EXPECT_EQ(merge({a, b}, "a").stored, 1U);
  EXPECT_EQ(content("a").size(), 2U);
}

TEST_F(MergeStores, AMissingOrDamagedInputIsNamed) {
  const std::string a = store("a", {sample_record(0)});
  const auto missing = merge_stores({a, at("none")}, at("out"), nullptr);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr(at("none")));
  EXPECT_FALSE(fs::exists(at("out"))) << "nothing is made before all inputs are open";
}

}  // namespace
}  // namespace bubblesim::store
