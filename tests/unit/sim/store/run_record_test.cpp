#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "sim/base/json.hpp"
#include "sim/store/run_record.hpp"
#include "sim/store/store_export.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

TEST(RunRecord, ReadsBackWhatWasWritten) {
  RunRecord record = sample_record(7);
  record.run.seed = ~std::uint64_t{0};
  const auto bytes = encode(record);
  const auto read = decode_run_record(bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(record_digest(*read), record_digest(record));
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_EQ(read->run.seed, ~std::uint64_t{0});
  EXPECT_EQ(read->run.settings, record.run.settings);
  EXPECT_EQ(read->rows[1].cells, record.rows[1].cells);
  EXPECT_EQ(read->latencies[0].histogram, record.latencies[0].histogram);
  EXPECT_EQ(read->counters.count("sizes_guessed"), 8U);
}

TEST(RunRecord, AFailureReadsBackWithItsReason) {
  const auto read = decode_run_record(encode(failed_record(1, "a.json: no such file\nb: bad")));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, RunStatus::kFailed);
  EXPECT_EQ(read->reason, "a.json: no such file\nb: bad");
}

TEST(RunRecord, EveryCutAndEveryFlippedByteIsRefusedOrAnotherRecord) {
  const auto bytes = encode(sample_record(3));
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(decode_run_record(std::span(bytes).first(size))) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); at += 5) {
    auto changed = bytes;
    changed[at] ^= 0x41U;
    const auto read = decode_run_record(changed);
    EXPECT_TRUE(!read || read->rows.size() + read->latencies.size() == 3U) << at;
  }
}

TEST(RunRecord, DeepNestingAndFalsePromisesAreRefused) {
  const std::vector<std::uint8_t> deep(1'000'000, 0x81);  // a list of one, a million times
  EXPECT_FALSE(decode_run_record(deep));
  // A list of 2^62 items; a text of 2^62 bytes.
  EXPECT_FALSE(decode_run_record(std::vector<std::uint8_t>{0x9B, 0x40, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(decode_run_record(std::vector<std::uint8_t>{0x7B, 0x40, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(RunRecord, ANewerFormIsNamed) {
  Json whole = Json::from_cbor(encode(sample_record(1)));
  whole[0] = 2;
  EXPECT_EQ(error_of(decode_run_record(Json::to_cbor(whole))).text(),
            "found a record of form 2, this program reads 1");
}

TEST(RunRecord, TheDigestSeesEveryPartAndTakesNanAsAbsent) {
  const RunRecord record = sample_record(1);
  const auto digest = record_digest(record);
  RunRecord other = record;
  other.run.config += ' ';
  EXPECT_NE(record_digest(other), digest);
  other = record;
  other.latencies[0].histogram.add(Duration{5});
  EXPECT_NE(record_digest(other), digest);
  other = record;
  set_cell(other, 1, "events", std::int64_t{1});
  EXPECT_NE(record_digest(other), digest);
  other = record;
  set_cell(other, 0, "replay_error_fraction", observe::Cell());
  RunRecord nan = record;
  set_cell(nan, 0, "replay_error_fraction", std::nan(""));
  EXPECT_EQ(record_digest(nan), record_digest(other));
}

namespace fs = std::filesystem;
using testing::HasSubstr;

class StoreExport : public testing::Test {
 protected:
  StoreExport() {
    std::string pattern = (fs::temp_directory_path() / "export_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    store_ = std::move(*open_store((folder_ / "results.db").string(), StoreAccess::kWrite));
    RunRecord second = sample_record(2);
    second.run.settings = {{"/name", R"("a \"b\", c")"}};
    const std::vector<RunRecord> records{sample_record(1), second, failed_record(3, "bad")};
    EXPECT_TRUE(store_->add(records));
  }
  ~StoreExport() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string text(ExportFormat format, const RowFilter& filter = {}) {
    std::string all;
    EXPECT_TRUE(export_rows(*store_, filter, format, [&](std::string_view piece) -> Result<void> {
      all += piece;
      return {};
    }));
    return all;
  }

  fs::path folder_;
  std::unique_ptr<ResultsStore> store_;
};

TEST_F(StoreExport, CsvHasTheColumnsOfOutputsTheRunAndEveryPointer) {
  const std::string csv = text(ExportFormat::kCsv);
  const std::string header = csv.substr(0, csv.find('\n'));
  EXPECT_TRUE(header.starts_with("config,seed,device,"));
  EXPECT_TRUE(header.ends_with(
      ",counters,key,sweep,index,point,repetition,/device,/fillers/0/load,/name"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4) << "two runs of two rows";
  EXPECT_THAT(csv, HasSubstr(sample_key(1) + ",load,1,p1,0,h100,0.1,\n"));
  EXPECT_THAT(csv, HasSubstr(sample_key(2) + R"(,load,2,p2,0,,,"a ""b"", c")"));
}

TEST_F(StoreExport, JsonIsOneListWithSettingsAsValues) {
  const Json all = Json::parse(text(ExportFormat::kJson));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1]["policy"], "mps");
  EXPECT_EQ(all[1]["settings"]["/fillers/0/load"], 0.1);
  EXPECT_EQ(all[1]["seed"], 1);
  EXPECT_TRUE(all[1]["jobs_makespan_s"].is_null());
  EXPECT_EQ(Json::parse(text(ExportFormat::kJson, {{}, {"tgs"}, {}, {}, {}})).size(), 0U);
}

TEST_F(StoreExport, SaysHowManyRowsThereWere) {
  const auto sink = [](std::string_view) -> Result<void> { return {}; };
  EXPECT_EQ(export_rows(*store_, {}, ExportFormat::kCsv, sink).value_or(9), 4U);
  EXPECT_EQ(export_rows(*store_, {{}, {"tgs"}, {}, {}, {}}, ExportFormat::kJson, sink).value_or(9),
            0U);
}

TEST_F(StoreExport, AFaultOfTheSinkEndsTheExport) {
  std::size_t pieces = 0;
  const auto written =
      error_of(export_rows(*store_, {}, ExportFormat::kCsv, [&](std::string_view) -> Result<void> {
        if (++pieces == 2) return fail("disk full");
        return {};
      }));
  EXPECT_EQ(written.text(), "disk full");
  EXPECT_EQ(pieces, 2U);
}

}  // namespace
}  // namespace bubblesim::store
