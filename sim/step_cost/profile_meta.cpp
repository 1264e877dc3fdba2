#include "sim/step_cost/profile_meta.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace bubblesim::step_cost {
namespace {

constexpr std::size_t kMostPoints = 1000;

std::string trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\'')) text.remove_prefix(1);
  while (!text.empty() && std::string_view(" '\r").find(text.back()) != std::string_view::npos) {
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
  const auto low = number_of(text.substr(0, dash));
  const auto high = number_of(text.substr(dash + 1, times - dash - 1));
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

  Result<Axis> points(std::string_view key) const {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string value, text(key));
    Axis points = parse_points(value);
    if (!points.empty()) return points;
    return fail(file_, std::string(key),
                "found '" + value + "'; expected points such as '0, 16-2048 x2'");
  }

  Result<std::vector<std::uint32_t>> counts(std::string_view key) const {
    BUBBLESIM_ASSIGN_OR_RETURN(std::string value, text(key));
    std::erase_if(value, [](char letter) { return letter == '[' || letter == ']'; });
    std::vector<std::uint32_t> out;
    for (const std::string& part : parts_of(value, ',')) {
      const auto number = number_of(part);
      if (!number || *number < 1) {
        return fail(file_, std::string(key), "found '" + value + "'; expected counts from 1 on");
      }
      out.push_back(static_cast<std::uint32_t>(*number));
    }
    return out;
  }

 private:
  const std::string& text_;
  const std::string& file_;
};

}  // namespace

Axis parse_points(const std::string& text) {
  Axis points;
  for (const std::string& part : parts_of(text, ',')) {
    if (const auto number = number_of(part)) {
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
  BUBBLESIM_ASSIGN_OR_RETURN(out.tensor_degrees, meta.counts("tp_degrees"));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto sequences, meta.counts("max_num_seqs"));
  out.max_sequences = sequences.front();
  BUBBLESIM_ASSIGN_OR_RETURN(out.chunks, meta.points("chunks"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.sequences, meta.points("n_decode"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.cached, meta.points("kv"));
  std::sort(out.tensor_degrees.begin(), out.tensor_degrees.end());
  return out;
}

}  // namespace bubblesim::step_cost
