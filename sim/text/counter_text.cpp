#include "sim/text/counter_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"

namespace bubblesim {

std::string counter_line(std::string_view name, const CounterSet::Entry& entry) {
  return fmt::format("  {:<8} {:<40} {:>10}  {}\n", severity_name(entry.severity), name,
                     entry.count, entry.help);
}

std::string counter_lines(const CounterSet& counters) {
  std::string lines;
  for (const auto& [name, entry] : counters) lines += counter_line(name, entry);
  return lines;
}

std::string loss_lines(const CounterSet& counters) {
  std::string lines;
  for (const auto& [name, entry] : counters) {
    if (entry.severity < Severity::kLoss) continue;
    lines += fmt::format("{}: {} {}: {}\n", entry.severity == Severity::kLoss ? "Lost" : "Error",
                         entry.count, name, entry.help);
  }
  return lines;
}

Json counters_object(const CounterSet& counters) {
  Json object = Json::object();
  for (const auto& [name, entry] : counters) {
    object[name] = {{"count", entry.count},
                    {"severity", severity_name(entry.severity)},
                    {"help", entry.help}};
  }
  return object;
}

Json counts_object(const CounterSet& counters) {
  Json object = Json::object();
  for (const auto& [name, entry] : counters) {
    object[name] = {{"severity", severity_name(entry.severity)}, {"count", entry.count}};
  }
  return object;
}

}  // namespace bubblesim
