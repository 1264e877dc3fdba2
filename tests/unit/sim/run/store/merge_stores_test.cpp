#include "sim/run/store/merge_stores.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "sim/run/store/results_store.hpp"
#include "tests/unit/sim/run/store/sample_record.hpp"

namespace bubblesim::run {
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
}  // namespace bubblesim::run
