#include "sim/policy/declaration.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::policy {
namespace {

using Values = std::map<std::string, Value, std::less<>>;

const Value& at(const Values& values, std::string_view name) {
  const auto found = values.find(name);
  BUBBLESIM_CHECK(found != values.end(), "parameter not declared: " + std::string(name));
  return found->second;
}

template <class T>
const T& typed(const Values& values, std::string_view name) {
  const T* value = std::get_if<T>(&at(values, name));
  BUBBLESIM_CHECK(value != nullptr, "parameter of another type: " + std::string(name));
  return *value;
}

}  // namespace

std::string value_text(const Value& value) {
  struct Text {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return shortest_text(number); }
    std::string operator()(Duration span) const { return format_duration(span); }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Text{}, value);
}

bool ParameterSet::flag(std::string_view name) const { return typed<bool>(values_, name); }

std::int64_t ParameterSet::integer(std::string_view name) const {
  return typed<std::int64_t>(values_, name);
}

double ParameterSet::number(std::string_view name) const { return typed<double>(values_, name); }

Duration ParameterSet::duration(std::string_view name) const {
  return typed<Duration>(values_, name);
}

std::optional<Duration> ParameterSet::duration_unless_word(std::string_view name) const {
  if (std::holds_alternative<std::string>(at(values_, name))) return std::nullopt;
  return typed<Duration>(values_, name);
}

const std::string& ParameterSet::text(std::string_view name) const {
  return typed<std::string>(values_, name);
}

ParameterSet defaults(const PolicySpec& spec) {
  Values values;
  for (const ParameterSpec& parameter : spec.parameters) {
    values.emplace(parameter.name, parameter.fallback);
  }
  return ParameterSet(std::move(values));
}

void Registry::add(PolicySpec spec) {
  BUBBLESIM_CHECK(!find(spec.name), "two policies of one name: " + spec.name);
  const auto declared = [&spec](const std::string& name) {
    return std::ranges::find(spec.parameters, name, &ParameterSpec::name) != spec.parameters.end();
  };
  for (const std::string& name : spec.not_searched) {
    BUBBLESIM_CHECK(declared(name), spec.name + " does not declare " + name);
  }
  for (const SystemDemand& demand : spec.demands) {
    BUBBLESIM_CHECK(demand.parameter.empty() || declared(demand.parameter),
                    spec.name + " does not declare " + demand.parameter);
  }
  specs_.push_back(std::move(spec));
}

Result<const PolicySpec*> Registry::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const PolicySpec& spec : specs_) {
    if (spec.name == name) return &spec;
    names.push_back(spec.name);
  }
  return fail(unknown_name_message("policy", name, names));
}

}  // namespace bubblesim::policy
