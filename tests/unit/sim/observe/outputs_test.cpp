// OUTPUTS.md defines every CSV column and JSON key, and nothing that is not written.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/report_servers.hpp"
#include "sim/observe/result_rows.hpp"
#include "tests/unit/sim/observe/documented_names.hpp"
#include "tests/unit/sim/observe/sample_report.hpp"

namespace bubblesim::observe {
namespace {

std::string section(const std::string& heading) {
  std::ifstream file(BUBBLESIM_SOURCE_DIR "/sim/observe/OUTPUTS.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t start = all.find("## " + heading + "\n");
  if (start == std::string::npos) return {};
  return all.substr(start, all.find("\n## ", start + 1) - start);
}

/// Names in the first cell of each table row: "| `name` | ...", "| `a_{b,c}` | ...".
std::set<std::string> defined(const std::string& text) {
  std::set<std::string> names;
  const std::regex row("(?:^|\n)\\| `([^`]+)` \\|");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    for (const std::string& name : documented_names((*it)[1])) names.insert(name);
  }
  return names;
}

/// Paths of all values that are not objects or lists: "policies[].training.iterations".
void collect(const Json& json, const std::string& path, std::set<std::string>& paths) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      collect(value, path.empty() ? key : path + "." + key, paths);
    }
  } else if (json.is_array()) {
    for (const Json& value : json) collect(value, path + "[]", paths);
  } else {
    paths.insert(path);
  }
}

TEST(Outputs, NamesInBracesStandForOneEach) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(documented_names("p{50,95} ms"), (Names{"p50 ms", "p95 ms"}));
  EXPECT_EQ(documented_names("{,a_}{b,c}"), (Names{"b", "c", "a_b", "a_c"}));
  EXPECT_EQ(documented_names("plain[]"), Names{"plain[]"});
}

TEST(Outputs, EveryColumnOfTheTableIsDefinedAndNoOther) {
  const std::string table = report_table(metered_report(), Columns::kAll);
  const std::size_t begin = table.find("\npolicy ") + 1;
  const std::string titles = table.substr(begin, table.find('\n', begin) - begin);
  std::set<std::string> written;
  const std::regex title("[^ ]+(?: [^ ]+)*");  // two spaces or more between them
  for (std::sregex_iterator it(titles.begin(), titles.end(), title), end; it != end; ++it) {
    written.insert(it->str());
  }
  EXPECT_EQ(defined(section("Table")), written);
}

TEST(Outputs, EveryCsvColumnIsDefinedAndNoOther) {
  const auto columns = csv_columns();
  EXPECT_EQ(defined(section("CSV")), std::set<std::string>(columns.begin(), columns.end()));
}

/// Two requests that were served and one that waits for its first token.
ServerResult sample_server() {
  ServerResult server;
  for (const int ms : {100, 300}) server.ttft.add(std::chrono::milliseconds(ms));
  server.ttft.add_unfinished(std::chrono::milliseconds(400));
  for (const int ms : {20, 30}) server.tpot.add(std::chrono::milliseconds(ms));
  server.output_tokens_per_s = 12.5;
  server.preemptions = 3;
  server.mean_kv_fraction = 0.25;
  server.limits = ServiceLimits{std::chrono::milliseconds(200), {}, {}};
  server.within_limits = 1;
  server.goodput_per_s = 0.5;
  return server;
}

TEST(Outputs, EveryColumnOfServersIsDefinedAndNoOther) {
  std::string header = servers_header();
  header.pop_back();
  std::set<std::string> written;
  std::stringstream columns(header);
  for (std::string column; std::getline(columns, column, ',');) written.insert(column);
  EXPECT_EQ(defined(section("Servers")), written);
}

TEST(Outputs, ServersHaveATableOfTheirOwnAndOthersHaveNone) {
  RunReport report = sample_report();
  EXPECT_EQ(server_table(report, Columns::kFew), "");
  EXPECT_EQ(servers_rows(report), "");
  report.policies[0].fillers[0].server = sample_server();
  EXPECT_NE(report_table(report, Columns::kAll).find(server_table(report, Columns::kAll)),
            std::string::npos);
  EXPECT_NE(server_table(report, Columns::kFew).find(" of 3  of 3         of 2  of 2 "),
            std::string::npos);
  LatencyDistribution& ttft = report.policies[0].fillers[0].server->ttft;
  const LatencyDistribution once = ttft;
  for (int i = 1; i < 40; ++i) ttft.merge(once);
  const std::string table = server_table(report, Columns::kFew);
  // Nearest rank: of 100, 300 and the age 400 the median is 300, and p99 a lower bound of 400.
  EXPECT_NE(table.find("300.000  >400.000"), std::string::npos) << table;
  const std::string row = servers_rows(report);
  EXPECT_NE(row.find(",12.5,0.5,1,3,0,0,0.25,0\n"), std::string::npos) << row;
}

/// The cell of the first row's column.
std::string first_cell(const RunReport& report, std::string_view column) {
  const auto columns = result_columns();
  const auto at = std::ranges::find(columns, column, &ResultColumn::name) - columns.begin();
  const Cell cell = result_rows(report).front().cells[static_cast<std::size_t>(at)];
  if (const auto* number = std::get_if<double>(&cell)) return std::to_string(*number);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

TEST(Outputs, ResultsHaveTheFiguresOfServersAndNothingElsewhere) {
  RunReport report = sample_report();
  for (const char* column : {"ttft_p95_ms", "tpot_mean_ms", "goodput_per_s", "kv_mean_fraction",
                             "server_preemptions", "requests_within_limits"}) {
    EXPECT_EQ(first_cell(report, column), "") << column;
  }
  report.policies[0].fillers[0].server = sample_server();
  EXPECT_EQ(first_cell(report, "ttft_p50_ms"), "300.000000");
  EXPECT_EQ(first_cell(report, "ttft_lower_bound_from"), "p90");
  EXPECT_EQ(first_cell(report, "tpot_mean_ms"), "25.000000");
  EXPECT_EQ(first_cell(report, "goodput_per_s"), "0.500000");
  EXPECT_EQ(first_cell(report, "requests_within_limits"), "1");
  EXPECT_EQ(first_cell(report, "server_preemptions"), "3");
}

TEST(Outputs, EveryColumnOfUsageOverTimeIsDefinedAndNoOther) {
  const auto columns = usage_columns();
  EXPECT_EQ(defined(section("Usage over time")),
            std::set<std::string>(columns.begin(), columns.end()));
}

TEST(Outputs, EveryJsonKeyIsDefinedAndNoOther) {
  RunReport report = metered_report();
  report.interrupted = {"tgs"};
  report.policies[0].fillers[0].server = sample_server();
  std::set<std::string> written;
  collect(Json::parse(report_json(report)), "", written);
  EXPECT_EQ(defined(section("JSON")), written);
}

TEST(Outputs, EveryJsonKeyOfRunsThatEndByThemselvesIsDefinedAndNoOther) {
  RunReport report = sample_report();
  std::set<std::string> given, known, added;
  collect(Json::parse(report_json(report)), "", given);
  report.policies.front().precision =
      RunPrecision{0.95, {{"training_rate", "", 0.005, 0.001, true}}};
  collect(Json::parse(report_json(report)), "", known);
  std::set_difference(known.begin(), known.end(), given.begin(), given.end(),
                      std::inserter(added, added.begin()));
  EXPECT_EQ(defined(section("Runs that end by themselves")), added);
}

TEST(Outputs, EveryJsonKeyOfMeasuredRunsIsDefinedAndNoOther) {
  std::set<std::string> simulated, measured;
  collect(Json::parse(report_json(sample_report())), "", simulated);
  collect(Json::parse(report_json(measured_report())), "", measured);
  std::set<std::string> added;
  std::set_difference(measured.begin(), measured.end(), simulated.begin(), simulated.end(),
                      std::inserter(added, added.begin()));
  EXPECT_EQ(defined(section("Measured runs")), added);
}

}  // namespace
}  // namespace bubblesim::observe
