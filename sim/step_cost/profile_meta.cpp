#include "sim/step_cost/profile_meta.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "sim/step_cost/layer_tables.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr std::size_t kMostPoints = 1000;
constexpr std::uint32_t kMostSequences = 1'000'000'000;

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" '\"").find(text.front()) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::string_view(" '\"\r").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0) || value > 1e9) return std::nullopt;
  return value;
}

std::optional<double> whole_of(const std::string& text) {
  const auto value = number_of(text);
  return value && std::floor(*value) == *value ? value : std::nullopt;
}

std::optional<std::uint32_t> count_of(const std::string& text, std::uint32_t most) {
  const auto value = whole_of(text);
  if (!value || *value < 1 || *value > most) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

/// The value beside the first line whose key this is, at any depth.
std::optional<std::string> value_of(const std::string& text, std::string_view key) {
  for (const std::string& line : parts_of(text, '\n')) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":")) {
      return trimmed(std::string_view(line).substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

/// "16-2048 x2".
bool add_range(const std::string& text, Axis& points) {
  const std::size_t dash = text.find('-');
  const std::size_t times = text.find(" x");
  if (dash == std::string::npos || times == std::string::npos || times < dash) return false;
  const auto low = whole_of(text.substr(0, dash));
  const auto high = whole_of(text.substr(dash + 1, times - dash - 1));
  const auto factor = number_of(text.substr(times + 2));
  if (!low || !high || !factor || *low < 1 || *factor <= 1 || *high < *low) return false;
  for (double at = *low; at < *high && points.size() < kMostPoints; at *= *factor) {
    if (const double point = std::round(at); points.empty() || point > points.back()) {
      points.push_back(point);
    }
  }
  points.push_back(*high);
  return true;
}

class MetaReader {
 public:
  MetaReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  Result<std::string> text(std::string_view key) const {
    if (auto value = value_of(text_, key); value && !value->empty()) return *value;
    return fail(file_, std::string(key),
                "is missing; expected as LLMServingSim's profiler writes it");
  }

  /// With a point from 1 to `most`, `use` being what those are taken for.
  Result<Axis> points(std::string_view key, double most, const std::string& use) const {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string value, text(key));
    Axis points = parse_points(value);
    if (points.empty()) {
      return fail(file_, std::string(key),
                  "found '" + value + "'; expected points such as '0, 16-2048 x2'");
    }
    const auto is_used = [most](double at) { return at >= 1 && at <= most; };
    if (std::any_of(points.begin(), points.end(), is_used)) return points;
    return fail(file_, std::string(key), "found '" + value + "'; expected a point " + use);
  }

  Result<std::uint32_t> count(std::string_view key, std::uint32_t most) const {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string value, text(key));
    if (const auto number = count_of(value, most)) return *number;
    return fail(file_, std::string(key),
                "found '" + value + "'; expected a whole number from 1 to " +
                    std::to_string(most));
  }

  /// Ascending.
  Result<std::vector<std::uint32_t>> counts(std::string_view key, std::uint32_t most) const {
    BUBBLESIM_ASSIGN_OR_RETURN(std::string value, text(key));
    std::erase_if(value, [](char letter) { return letter == '[' || letter == ']'; });
    std::set<std::uint32_t> out;
    for (const std::string& part : parts_of(value, ',')) {
      const auto number = count_of(part, most);
      if (!number || !out.insert(*number).second) {
        return fail(file_, std::string(key),
                    "found '" + value + "'; expected whole numbers from 1 to " +
                        std::to_string(most) + ", each once");
      }
    }
    return std::vector(out.begin(), out.end());
  }

 private:
  const std::string& text_;
  const std::string& file_;
};

}  // namespace

Axis parse_points(const std::string& text) {
  Axis points;
  for (const std::string& part : parts_of(text, ',')) {
    if (const auto number = whole_of(part)) {
      points.push_back(*number);
    } else if (!add_range(part, points)) {
      return {};
    }
  }
  const bool ascends = std::adjacent_find(points.begin(), points.end(),
                                          std::greater_equal<>{}) == points.end();
  return ascends ? points : Axis{};
}

Result<ProfileMeta> parse_profile_meta(const std::string& text, const std::string& file) {
  const MetaReader meta(text, file);
  ProfileMeta out;
  BUBBLESIM_ASSIGN_OR_RETURN(out.gpu, meta.text("gpu"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.model, meta.text("model"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.engine_version, meta.text("vllm_version"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.profiled_at, meta.text("profiled_at"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.tensor_degrees, meta.counts("tp_degrees", kMostTensor));
  BUBBLESIM_ASSIGN_OR_RETURN(out.max_sequences, meta.count("max_num_seqs", kMostSequences));
  const double most = std::numeric_limits<double>::max();
  BUBBLESIM_ASSIGN_OR_RETURN(out.chunks, meta.points("chunks", most, "above 0, for prompts"));
  const std::uint32_t used = std::max(1U, out.most_beside_prompt());
  BUBBLESIM_ASSIGN_OR_RETURN(
      out.sequences, meta.points("n_decode", used,
                                 "from 1 to " + std::to_string(used) + ", max_num_seqs being " +
                                     std::to_string(out.max_sequences)));
  BUBBLESIM_ASSIGN_OR_RETURN(out.cached,
                             meta.points("kv", most, "above 0, for sequences that decode"));
  return out;
}

}  // namespace bubblesim::step_cost
