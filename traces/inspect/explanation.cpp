#include "traces/inspect/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "sim/base/json.hpp"
#include "sim/text/text_table.hpp"
#include "traces/inspect/labels.hpp"

namespace bubblesim::traces {
namespace {

struct Words {
  std::string_view key;    ///< in JSON
  std::string_view label;  ///< for people
};

constexpr std::array<Words, kHeldByCount> kHolders{{{"launch", "launching call"},
                                                    {"stream", "stream order"},
                                                    {"edge", "recorded dependency"},
                                                    {"inferred", "inferred dependency"},
                                                    {"unknown", "not known"}}};
constexpr std::array<Words, kHostWaitCount> kWaits{{{"stream", "stream synchronisation"},
                                                    {"device", "device synchronisation"},
                                                    {"event", "event synchronisation"},
                                                    {"copy", "blocking copy"},
                                                    {"memory", "allocation or free"},
                                                    {"queue", "full launch queue"},
                                                    {"thread", "another thread"}}};
constexpr std::array<std::string_view, kWaitForCount> kReasons{"named", "inferred", "nothing",
                                                               "unknown"};

template <std::size_t count>
std::uint64_t sum(const std::array<std::uint64_t, count>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

// "-" for none, so that a table shows what there is.
std::string cell(std::uint64_t count) { return count == 0 ? "-" : fmt::to_string(count); }

std::string cell(Duration time, Duration window) {
  if (time == Duration{}) return "-";
  return fmt::format("{} ({})", short_duration(time), percent(time, window));
}

std::string starts_table(const Explanation& all) {
  TextTable table({"start held by", "operations", "unexplained"}, {Align::kLeft});
  for (std::size_t i = 0; i < kHeldByCount; ++i) {
    if (all.starts[i] == 0) continue;
    const bool unknown = i == static_cast<std::size_t>(HeldBy::kUnknown);
    table.row({std::string(kHolders[i].label), cell(all.starts[i]),
               cell(unknown ? all.late_starts : Duration{}, all.window)});
  }
  return table.text();
}

std::string waits_table(const Explanation& all) {
  TextTable table({"host wait", "for named work", "inferred", "nothing pending", "not known",
                   "unexplained"},
                  {Align::kLeft});
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    const auto& counts = all.waits[i];
    if (sum(counts) == 0) continue;
    table.row({std::string(kWaits[i].label), cell(counts[0]), cell(counts[1]), cell(counts[2]),
               cell(counts[3]), cell(all.open_waits[i], all.window)});
  }
  return table.text();
}

}  // namespace

double Explanation::share() const { return std::min(1.0, fraction(unexplained, window)); }

void Explanation::add(const Explanation& other) {
  window += other.window;
  late_starts += other.late_starts;
  unexplained += other.unexplained;
  for (std::size_t i = 0; i < kHeldByCount; ++i) starts[i] += other.starts[i];
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    open_waits[i] += other.open_waits[i];
    for (std::size_t j = 0; j < kWaitForCount; ++j) waits[i][j] += other.waits[i][j];
  }
}

std::string explanation_text(const std::vector<Explanation>& ranks) {
  if (ranks.empty()) return "";
  Explanation all;
  double most = 0;
  for (const Explanation& rank : ranks) {
    all.add(rank);
    most = std::max(most, rank.share());
  }
  std::string text =
      fmt::format("\nUnexplained: {:.2f} % of the iterations' time", 100 * all.share());
  if (ranks.size() > 1) text += fmt::format(", of one rank up to {:.2f} %", 100 * most);
  return text + "\n" + starts_table(all) + "\n" + waits_table(all);
}

Json explanation_json(const Explanation& found) {
  Json json;
  json["window_ns"] = to_ns(found.window);
  json["unexplained_ns"] = to_ns(found.unexplained);
  json["unexplained_fraction"] = found.share();
  for (std::size_t i = 0; i < kHeldByCount; ++i) {
    json["starts"][std::string(kHolders[i].key)] = found.starts[i];
  }
  json["starts"]["unexplained_ns"] = to_ns(found.late_starts);
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    Json& wait = json["waits"][std::string(kWaits[i].key)];
    for (std::size_t j = 0; j < kWaitForCount; ++j) {
      wait[std::string(kReasons[j])] = found.waits[i][j];
    }
    wait["unexplained_ns"] = to_ns(found.open_waits[i]);
  }
  return json;
}

}  // namespace bubblesim::traces
