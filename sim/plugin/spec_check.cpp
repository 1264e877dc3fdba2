#include "sim/plugin/spec_check.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "sim/base/nearest.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::plugin {
namespace {

constexpr std::size_t kLongestName = 64;

Result<void> check_parameter(const policy::ParameterSpec& parameter) {
  const std::string what = "parameter " + quote_found(parameter.name) + ": ";
  if (!is_policy_name(parameter.name)) return fail(what + "expected a name in snake_case");
  if (parameter.minimum.index() != parameter.maximum.index()) {
    return fail(what + "its minimum and maximum are of two types");
  }
  const bool word = std::holds_alternative<std::string>(parameter.fallback);
  if (!word && parameter.fallback.index() != parameter.minimum.index()) {
    return fail(what + "its default is of another type than its range");
  }
  const auto value = policy::parse_value(parameter, policy::value_text(parameter.fallback));
  if (!value) return fail(what + "its default is not allowed: " + value.error().message);
  return {};
}

}  // namespace

bool is_policy_name(std::string_view name) {
  const auto lower = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  const auto other = [](char letter) { return (letter >= '0' && letter <= '9') || letter == '_'; };
  return !name.empty() && name.size() <= kLongestName && lower(name.front()) &&
         std::ranges::all_of(name, [&](char letter) { return lower(letter) || other(letter); });
}

Result<void> check_spec(const policy::PolicySpec& spec, const policy::Registry& registry) {
  if (!is_policy_name(spec.name)) {
    return fail("expected a name in snake_case of at most " + std::to_string(kLongestName) +
                " letters");
  }
  if (registry.find(spec.name)) return fail("there is a policy of this name already");
  if (spec.summary.empty()) return fail("has no summary");
  if (!spec.make) return fail("has no function that makes it");
  std::set<std::string> names;
  for (const policy::ParameterSpec& parameter : spec.parameters) {
    BUBBLESIM_RETURN_IF_ERROR(check_parameter(parameter));
    if (!names.insert(parameter.name).second) {
      return fail("declares the parameter " + quote_found(parameter.name) + " twice");
    }
  }
  return {};
}

}  // namespace bubblesim::plugin
