// Usage over time as CSV: a line an interval. OUTPUTS.md, "Usage over time".
#include <array>

#include "sim/observe/csv_numbers.hpp"
#include "sim/observe/report.hpp"
#include "sim/text/csv_text.hpp"

namespace bubblesim::observe {
namespace {

constexpr std::array<std::string_view, 14> kUsageColumns{
    "config",        "policy",
    "policy_index",  "gpu",
    "from_ms",       "to_ms",
    "busy_fraction", "training_busy_fraction",
    "filler_busy_fraction", "training_sm_fraction",
    "filler_sm_fraction",   "memory_bytes",
    "power_w",              "clock_mhz"};

void append_cell(std::string& line, const std::string& cell) {
  line += ',';
  line += cell;
}

void append_interval(std::string& line, const UsageInterval& interval, std::uint32_t sm_count) {
  const auto length = static_cast<double>((interval.to - interval.from).count());
  const auto share = [length](Duration part) {
    return number(static_cast<double>(part.count()) / length);
  };
  const auto sm_share = [&](std::int64_t sm_ns) {
    const double whole = length * sm_count;
    return number(whole > 0 ? static_cast<double>(sm_ns) / whole : 0);
  };
  append_cell(line, milliseconds(interval.from - kSimStart));
  append_cell(line, milliseconds(interval.to - kSimStart));
  append_cell(line, share(interval.busy));
  append_cell(line, share(interval.training_busy));
  append_cell(line, share(interval.filler_busy));
  append_cell(line, sm_share(interval.training_sm_ns));
  append_cell(line, sm_share(interval.filler_sm_ns));
  append_cell(line, std::to_string(interval.memory.value));
  append_cell(line, interval.power ? number(interval.power->watts) : std::string());
  append_cell(line, interval.power ? number(interval.power->clock_mhz) : std::string());
  line += '\n';
}

}  // namespace

std::span<const std::string_view> usage_columns() { return kUsageColumns; }

std::string usage_header() {
  std::string line;
  for (const std::string_view name : kUsageColumns) {
    if (!line.empty()) line += ',';
    line += name;
  }
  return line + '\n';
}

std::string usage_rows(const RunReport& report) {
  std::string text;
  for (std::size_t policy = 0; policy < report.policies.size(); ++policy) {
    const PolicyResult& result = report.policies[policy];
    for (const GpuUsage& gpu : result.usage) {
      std::string start;
      append_csv_cell(start, report.config);
      start += ',';
      append_csv_cell(start, result.policy);
      append_cell(start, std::to_string(policy));
      append_cell(start, std::to_string(gpu.gpu.value));
      for (const UsageInterval& interval : gpu.intervals) {
        text += start;
        append_interval(text, interval, gpu.sm_count);
      }
    }
  }
  return text;
}

}  // namespace bubblesim::observe
