#include "sim/validate/sharing_case.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/validate/job_name.hpp"

namespace bubblesim::validate {
namespace {

constexpr double kLeastRate = 0.1;
constexpr double kMostRate = 1e6;
constexpr std::array<std::string_view, 7> kMarks{"/s",  "/sec", "/second", "per second",
                                                 "rps", "qps",  "hz"};
constexpr std::array<std::string_view, 4> kUnits{"requests", "request", "reqs", "req"};

void trim_end(std::string_view& text) {
  text = text.substr(0, text.find_last_not_of(' ') + 1);
}

// What ends in the number of a rate: letters, digits and signs of numbers up to a blank or so.
std::string_view last_token(std::string_view text) {
  const auto is_part = [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == ',' || c == '+' || c == '-';
  };
  auto from = text.size();
  while (from > 0 && is_part(text[from - 1])) --from;
  return text.substr(from);
}

// Where marks of a rate begin that no word goes on beside.
std::vector<std::size_t> rate_marks(std::string_view words) {
  std::vector<std::size_t> out;
  for (const std::string_view mark : kMarks) {
    for (auto at = words.find(mark); at != std::string_view::npos; at = words.find(mark, at + 1)) {
      const auto end = at + mark.size();
      if (end < words.size() && is_letter(words[end])) continue;
      if (mark.front() != '/' && at > 0 && is_letter(words[at - 1])) continue;
      out.push_back(at);
    }
  }
  return out;
}

}  // namespace

Result<std::optional<double>> rate_in(std::string_view words) {
  const std::string text = in_lower_case(words);
  const auto marks = rate_marks(text);
  if (marks.empty()) return std::optional<double>{};
  if (marks.size() > 1) return fail("two rates in " + quote_found(words) + "; expected one");
  std::string_view before = std::string_view(text).substr(0, marks.front());
  trim_end(before);
  for (const std::string_view unit : kUnits) {
    if (!before.ends_with(unit)) continue;
    before.remove_suffix(unit.size());
    trim_end(before);
    break;
  }
  const auto rate = parse_number<double>(last_token(before));
  if (rate && *rate >= kLeastRate && *rate <= kMostRate) return rate;
  return fail("no rate is read in " + quote_found(words) +
              "; expected 0.1 to 1e6 requests/s, as in \"30.7/s\"");
}

std::optional<SliceMetric> slice_metric(std::string_view metric) {
  if (metric == "samples_per_s") return SliceMetric{{{}, Quantity::kSum}, 1e3, true};
  const bool in_ms = metric.ends_with("_ms");
  if (!in_ms && !metric.ends_with("_s")) return std::nullopt;
  const double ms = in_ms ? 1 : 1e3;
  metric.remove_suffix(in_ms ? 3 : 2);
  if (metric == "mean") return SliceMetric{{{}, Quantity::kMean}, ms};
  if (metric == "median" || metric == "median_iteration") {
    return SliceMetric{{{}, Quantity::kPercentile, 0, 50}, ms};
  }
  if (!metric.starts_with('p')) return std::nullopt;
  const auto percent = parse_number<double>(metric.substr(1));
  if (!percent || !(*percent >= 0 && *percent <= 100)) return std::nullopt;
  return SliceMetric{{{}, Quantity::kPercentile, 0, *percent}, ms};
}

}  // namespace bubblesim::validate
