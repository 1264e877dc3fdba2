#include "sim/store/policy_labels.hpp"

#include <algorithm>
#include <vector>

namespace bubblesim::store {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

}  // namespace

void PolicyLabels::see(const std::string& policy, const std::string& parameters) {
  seen_[policy].insert(parameters);
}

std::string PolicyLabels::label(const std::string& policy, const std::string& parameters) const {
  const auto& all = seen_.at(policy);
  if (all.size() < 2) return policy;
  std::string label;
  for (const std::string& part : split(parameters, ';')) {
    const bool common = std::all_of(all.begin(), all.end(), [&](const std::string& other) {
      const auto parts = split(other, ';');
      return std::find(parts.begin(), parts.end(), part) != parts.end();
    });
    if (!common) label += (label.empty() ? "" : ", ") + part;
  }
  return label.empty() ? policy : policy + "(" + label + ")";
}

bool is_of_point(const Setting& setting) {
  return !setting.pointer.starts_with("/policies") && setting.pointer != "/seed";
}

}  // namespace bubblesim::store
