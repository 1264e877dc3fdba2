#include "sim/policy/parameter_check.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::policy {
namespace {

std::string or_words(const ParameterSpec& parameter) {
  std::string words;
  for (const std::string& word : parameter.choices) words += " or \"" + word + "\"";
  return words;
}

tl::unexpected<Error> wrong(const ParameterSpec& parameter, std::string_view text,
                            const std::string& expected) {
  return fail("found " + quote_found(text) + ", expected " + expected + or_words(parameter));
}

/// Not a number (NaN) is in no range.
template <class T>
bool is_in_range(const ParameterSpec& parameter, T value) {
  return value >= std::get<T>(parameter.minimum) && value <= std::get<T>(parameter.maximum);
}

template <class T>
Result<Value> in_range(const ParameterSpec& parameter, std::string_view text, T value) {
  if (is_in_range(parameter, value)) return Value(value);
  std::string expected = value_text(parameter.minimum) + " to " + value_text(parameter.maximum);
  if (!parameter.unit.empty()) expected += " " + parameter.unit;
  return wrong(parameter, text, expected);
}

/// Reads a text as the type of the visited value.
struct Reader {
  const ParameterSpec& parameter;
  std::string_view text;

  Result<Value> operator()(bool) const {
    if (text == "true") return Value(true);
    if (text == "false") return Value(false);
    return wrong(parameter, text, "true or false");
  }
  Result<Value> operator()(std::int64_t) const {
    const auto number = parse_number<std::int64_t>(text);
    if (!number) return wrong(parameter, text, "a whole number");
    return in_range(parameter, text, *number);
  }
  Result<Value> operator()(double) const {
    const auto number = parse_number<double>(text);
    if (!number) return wrong(parameter, text, "a number");
    return in_range(parameter, text, *number);
  }
  Result<Value> operator()(Duration) const {
    const auto span = parse_duration(text);
    if (!span) return wrong(parameter, text, "a time with its unit, such as \"5ms\"");
    return in_range(parameter, text, *span);
  }
  Result<Value> operator()(const std::string&) const {
    if (parameter.choices.empty()) return Value(std::string(text));
    return fail(unknown_name_message("value", text, parameter.choices));
  }
};

/// As JSON writes it: a number that is not an integer shows that.
std::string text_of(const JsonScalar& given) {
  const std::string text = std::visit([](const auto& held) { return value_text(held); }, given);
  const bool hides = std::holds_alternative<double>(given) &&
                     text.find_first_of(".e") == std::string::npos;
  return hides ? text + ".0" : text;
}

/// A flag or a number of the parameter's type, in range; nothing: its text decides, and says what
/// is wrong.
std::optional<Value> typed_value(const ParameterSpec& parameter, const JsonScalar& given) {
  const Value& type = type_value(parameter);
  const auto* flag = std::get_if<bool>(&given);
  if (flag != nullptr && std::holds_alternative<bool>(type)) return Value(*flag);
  const auto* integer = std::get_if<std::int64_t>(&given);
  if (integer != nullptr && std::holds_alternative<std::int64_t>(type)) {
    if (is_in_range(parameter, *integer)) return Value(*integer);
  }
  const auto* number = std::get_if<double>(&given);
  if ((integer != nullptr || number != nullptr) && std::holds_alternative<double>(type)) {
    const double value = number != nullptr ? *number : static_cast<double>(*integer);
    if (is_in_range(parameter, value)) return Value(value);
  }
  return std::nullopt;
}

Result<Value> read_value(const ParameterSpec& parameter, const JsonScalar& given) {
  if (auto value = typed_value(parameter, given)) return *std::move(value);
  return parse_value(parameter, text_of(given));
}

}  // namespace

const Value& type_value(const ParameterSpec& parameter) {
  const bool word = std::holds_alternative<std::string>(parameter.fallback) &&
                    !std::holds_alternative<std::string>(parameter.minimum) &&
                    !std::holds_alternative<bool>(parameter.minimum);
  return word ? parameter.minimum : parameter.fallback;
}

Result<Value> parse_value(const ParameterSpec& parameter, std::string_view text) {
  if (std::ranges::find(parameter.choices, text) != parameter.choices.end()) {
    return Value(std::string(text));
  }
  return std::visit(Reader{parameter, text}, type_value(parameter));
}

CheckedResult<ParameterSet> check_parameters(const PolicySpec& spec,
                                             std::span<const GivenParameter> given,
                                             std::string_view file, std::string_view place) {
  std::map<std::string, Value, std::less<>> values;
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : spec.parameters) {
    values.emplace(parameter.name, parameter.fallback);
    names.push_back(parameter.name);
  }
  Errors errors;
  const auto add_error = [&](std::string_view name, std::string message) {
    const Json::json_pointer own = Json::json_pointer() / std::string(name);
    errors.push_back({std::string(file), std::string(place) + own.to_string(), std::move(message)});
  };
  std::set<std::string_view> seen;
  for (const auto& [name, given_value] : given) {
    const auto parameter = std::ranges::find(spec.parameters, name, &ParameterSpec::name);
    if (parameter == spec.parameters.end()) {
      add_error(name, unknown_name_message("parameter of policy " + spec.name, name, names));
      continue;
    }
    if (!seen.insert(name).second) {
      add_error(name, "given twice");
      continue;
    }
    auto value = read_value(*parameter, given_value);
    if (value)
      values.find(name)->second = *std::move(value);
    else
      add_error(name, std::move(value).error().message);
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return ParameterSet(std::move(values));
}

}  // namespace bubblesim::policy
