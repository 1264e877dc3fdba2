#include "sim/store/store_export.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "sim/base/json.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

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
  const auto written = export_rows(*store_, {}, ExportFormat::kCsv,
                                   [&](std::string_view) -> Result<void> {
                                     if (++pieces == 2) return fail("disk full");
                                     return {};
                                   });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().text(), "disk full");
  EXPECT_EQ(pieces, 2U);
}

}  // namespace
}  // namespace bubblesim::store
