#include "sim/report/report_page.hpp"

#include <gmock/gmock.h>

#include "sim/base/json.hpp"
#include "tests/unit/sim/report/report_case.hpp"

namespace bubblesim::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using ReportPage = ReportCase;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(ReportPage, HostileTextsCannotEndTheScript) {
  const std::string hostile = "</script><script>alert(1)</script><!-- & ]]>";
  store::RunRecord record = run(0, "mps", "1", 1, 10, 0.9);
  record.sweep = hostile;
  record.host = hostile;
  record.run.settings.push_back({"/" + hostile, Json(hostile).dump()});
  set_cell(record, 0, "filler", hostile);
  add(record);
  add(store::failed_record(1, hostile));
  ReportData data = report();
  data.title = hostile;
  const std::string page = report_page(data);
  EXPECT_EQ(count_of(page, "</script"), 2U);  // of the data and of the script
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;"));
  const Json read = Json::parse(report_json(data));
  EXPECT_EQ(read["hosts"][0], hostile);
  EXPECT_EQ(read["title"], hostile);
}

TEST_F(ReportPage, NamesNoAddressAndAllowsItsOwnScriptOnly) {
  add(run(0, "mps", "1", 1, 10, 0.9));
  std::string page = report_page(report());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_EQ(count_of(page, "http"), 2U);  // http-equiv, and the name of SVG's elements
  EXPECT_THAT(page, HasSubstr("http://www.w3.org/2000/svg"));
  for (const char* word : {"eval(", "innerHTML", "new Function", "unsafe-inline", "{{"}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

TEST_F(ReportPage, TheSameStoreGivesTheSameBytes) {
  add(run(0, "mps", "1", 1, 10, 0.9));
  add(store::failed_record(1, "reason"));
  EXPECT_EQ(report_page(report()), report_page(report()));
}

TEST_F(ReportPage, TextsThatAreNoUtf8AreReplaced) {
  store::RunRecord record = run(0, "mps", "1", 1, 10, 0.9);
  record.host = "host\xff";
  add(record);
  EXPECT_TRUE(Json::accept(report_json(report())));
}

TEST_F(ReportPage, NumbersHaveSixDigits) {
  add(run(0, "mps", "1", 1, 10.0 / 3, 1.0));
  const Json read = Json::parse(report_json(report()));
  EXPECT_EQ(read["points"][0][5][metric_place("latency_p95_ms")], 3.33333);
}

}  // namespace
}  // namespace bubblesim::report
