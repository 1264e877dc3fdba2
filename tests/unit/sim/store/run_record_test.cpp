#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <regex>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/store/run_record.hpp"
#include "sim/store/store_export.hpp"
#include "sim/store/store_schema.hpp"
#include "tests/fault.hpp"
#include "tests/temp_folder.hpp"
#include "tests/unit/sim/observe/documented_names.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::store {
namespace {

using testing::AllOf, testing::HasSubstr;

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

class StoreExport : public testing::Test {
 protected:
  StoreExport() {
    RunRecord second = sample_record(2);
    second.run.settings = {{"/name", R"("a \"b\", c")"}};
    const std::vector<RunRecord> records{sample_record(1), second, failed_record(3, "bad")};
    EXPECT_TRUE(store_->add(records));
  }
  [[nodiscard]] std::string text(ExportFormat format, const RowFilter& filter = {}) {
    std::string all;
    EXPECT_TRUE(export_rows(*store_, filter, format, [&](std::string_view piece) -> Result<void> {
      all += piece;
      return {};
    }));
    return all;
  }

  const TempFolder temp_;
  const std::unique_ptr<ResultsStore> store_ =
      must(open_store(temp_.path("results.db"), StoreAccess::kWrite));
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

// Versions of the schema, and what OUTPUTS.md says of it.

/// A store of one run that other programs change.
class StoreSchema : public testing::Test {
 protected:
  void SetUp() override {
    const RunRecord record = sample_record(1);
    const auto store = open_store(where(), StoreAccess::kWrite);
    ASSERT_TRUE(store && (*store)->add({&record, 1}));
  }
  [[nodiscard]] std::string where() const { return temp_.path("results.db"); }
  void sql(const std::string& text) const {
    sqlite3* handle = nullptr;
    sqlite3_open(where().c_str(), &handle);
    EXPECT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }
  [[nodiscard]] std::string fault(StoreAccess access = StoreAccess::kRead) const {
    const auto store = open_store(where(), access);
    return store ? "opened" : store.error().text();
  }

  const TempFolder temp_;
};

TEST_F(StoreSchema, ANewerVersionIsRefusedWithBothVersions) {
  sql("UPDATE meta SET value = '3' WHERE name = 'schema_version'");
  for (const StoreAccess access : {StoreAccess::kRead, StoreAccess::kWrite}) {
    EXPECT_THAT(fault(access), AllOf(HasSubstr("written by a newer bubblesim"),
                                     HasSubstr("version 3"), HasSubstr("up to 2")));
  }
}

TEST_F(StoreSchema, AColumnOfANewerProgramIsNamed) {
  sql("ALTER TABLE rows ADD COLUMN carbon_kg REAL");
  EXPECT_THAT(fault(), AllOf(HasSubstr("newer bubblesim"), HasSubstr("\"carbon_kg\"")));
}

TEST_F(StoreSchema, AVersionThatIsNoNumberIsDamage) {
  sql("UPDATE meta SET value = 'one' WHERE name = 'schema_version'");
  EXPECT_THAT(fault(), AllOf(HasSubstr("\"one\""), HasSubstr("damaged")));
}

TEST_F(StoreSchema, AMissingTableOrForeignDatabaseIsRefused) {
  sql("DROP VIEW results; DROP TABLE counters");
  EXPECT_THAT(fault(), AllOf(HasSubstr("counters"), HasSubstr("damaged")));
  sql("DROP TABLE meta");
  EXPECT_THAT(fault(), HasSubstr("is no results store"));
  sql("PRAGMA application_id = 7");
  EXPECT_THAT(fault(StoreAccess::kWrite), HasSubstr("an SQLite file of another program"));
}

// No sample has a value in that column, as no record of an older program has.
TEST_F(StoreSchema, AnOlderStoreIsReadAndIsGivenTheColumnsThatItLacks) {
  sql("DROP VIEW results; ALTER TABLE rows DROP COLUMN jobs_makespan_s; "
      "CREATE VIEW results AS SELECT key FROM runs");
  {
    const auto store = must(open_store(where(), StoreAccess::kRead));
    ASSERT_TRUE(store->each_row({}, [](const StoredRow& row) {
      EXPECT_EQ(row.row.cells[column_place("jobs_makespan_s")], observe::Cell());
      EXPECT_EQ(row.row.cells[column_place("policy_calls")],
                sample_record(1).rows[0].cells[column_place("policy_calls")]);
    }));
  }
  const auto store = must(open_store(where(), StoreAccess::kWrite));
  RunRecord record = sample_record(2);
  set_cell(record, 1, "jobs_makespan_s", 2.5);
  ASSERT_TRUE(store->add({&record, 1}));
  std::vector<observe::Cell> events;
  ASSERT_TRUE(store->each_row({{}, {"mps"}, {}, {}, {}}, [&](const StoredRow& row) {
    events.push_back(row.row.cells[column_place("jobs_makespan_s")]);
  }));
  EXPECT_EQ(events[0], observe::Cell());
  EXPECT_EQ(events[1], record.rows[1].cells[column_place("jobs_makespan_s")]);
  sql("SELECT jobs_makespan_s FROM results");
}

/// What version 1 had: no memberships, and a view without them.
constexpr const char* kToVersionOne =
    "DROP VIEW results; DROP TABLE memberships; "
    "UPDATE meta SET value = '1' WHERE name = 'schema_version'; "
    "CREATE VIEW results AS SELECT runs.key, runs.sweep, rows.* FROM runs JOIN rows ON "
    "rows.run = runs.run";

TEST_F(StoreSchema, AStoreOfVersionOneIsReadAsItIsAndBecomesVersionTwoWhenItIsWritten) {
  const RunRecord failed = failed_record(2, "bad");
  ASSERT_TRUE((*open_store(where(), StoreAccess::kWrite))->add({&failed, 1}));
  sql(kToVersionOne);
  const auto lines = [](ResultsStore& store) {
    std::string found;
    EXPECT_TRUE(store.each_run({}, [&](const RunRecord& run) {
      found += run.sweep + std::to_string(run.run.index) + " ";
    }));
    return found;
  };
  {
    const auto store = must(open_store(where(), StoreAccess::kRead));
    EXPECT_EQ(lines(*store), "load1 load2 ");
    EXPECT_TRUE(store->check());
  }
  const auto store = must(open_store(where(), StoreAccess::kWrite));
  EXPECT_EQ(lines(*store), "load1 load2 ");
  RunRecord done = sample_record(2);
  done.sweep = "other";
  done.run.index = 5;
  EXPECT_EQ(store->add({&done, 1}).value_or(9), 1U) << "in the place of the failure";
  ASSERT_TRUE(store->join("other", std::vector<PlannedRun>{sample_record(1).run}));
  EXPECT_EQ(lines(*store), "load1 load2 other1 other5 ");
  EXPECT_TRUE(store->check());
  EXPECT_EQ(lines(**open_store(where(), StoreAccess::kWrite)), "load1 load2 other1 other5 ");
  sql("CREATE TABLE seen(rows CHECK(rows = 'load4 other4')); INSERT INTO seen SELECT "
      "group_concat(sweep || n, ' ') FROM (SELECT sweep, count(*) AS n FROM results "
      "GROUP BY sweep ORDER BY sweep)");
}

TEST_F(StoreSchema, AChangedMembershipIsFoundByTheCheck) {
  const auto store = open_store(where(), StoreAccess::kWrite);
  ASSERT_TRUE((*store)->join("other", std::vector<PlannedRun>{sample_record(1).run}));
  EXPECT_TRUE((*store)->check());
  for (const char* change : {"plan_index = 3", "settings = '[[1]]'", "settings = 'no list'"}) {
    sql(std::string("UPDATE memberships SET ") + change);
    const auto checked = error_of((*store)->check());
    EXPECT_THAT(checked.text(), AllOf(HasSubstr("sweep other"), HasSubstr("check sum")));
  }
}

std::string type_text(StoreType type) {
  switch (type) {
    case StoreType::kRowId:
    case StoreType::kInteger: return "integer";
    case StoreType::kNumber: return "real";
    case StoreType::kBytes: return "bytes";
    case StoreType::kText: break;
  }
  return "text";
}

TEST(StoreTables, AreWhatOutputsSaysAndNoOther) {
  std::string text = read_text_file(BUBBLESIM_SOURCE_DIR "/sim/observe/OUTPUTS.md").value();
  text = text.substr(text.find("## Results store\n"));
  EXPECT_THAT(text, HasSubstr("version of the tables: " + std::to_string(kStoreSchemaVersion)));
  std::vector<std::string> documented, made;
  const std::regex line("\n\\| `([^`]+)` \\| `([^`]+)` \\| ([a-z]+) \\|");
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
    for (const std::string& column : observe::documented_names((*it)[2])) {
      documented.push_back((*it)[1].str() + "." + column + " " + (*it)[3].str());
    }
  }
  const auto results = observe::result_columns();
  for (const StoreTable& table : store_tables()) {
    std::size_t own = table.columns.size();
    if (table.name == "rows") own -= results.size();  // documented as the columns of CSV
    for (std::size_t i = 0; i < own; ++i) {
      const StoreColumn& column = table.columns[i];
      made.push_back(table.name + "." + column.name + " " + type_text(column.type));
    }
  }
  EXPECT_THAT(documented, testing::UnorderedElementsAreArray(made));
}

}  // namespace
}  // namespace bubblesim::store
