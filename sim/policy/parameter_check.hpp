// Turns a config's parameters into the set with which a policy is made. All faults are reported at
// once: unknown and repeated names, values of another type, out of range or not among the choices,
// each with the value found, the allowed ones and the nearest name.
#pragma once

#include <span>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policy {

/// A config gives a flag, number or text, an option a text. A text is read as the parameter's type:
/// true, 20000, 0.68, 5ms, none.
struct GivenParameter {
  std::string_view name;
  JsonScalar value;
};

/// The value whose alternative is the parameter's type: its default, or its minimum if the
/// default is a word.
[[nodiscard]] const Value& type_value(const ParameterSpec& parameter);

/// The text as the parameter's type, in range; or the fault.
[[nodiscard]] Result<Value> parse_value(const ParameterSpec& parameter, std::string_view text);

/// The given values, and defaults for the others. `place` is the JSON pointer of their object: a
/// fault's place is `place` + "/" + name.
[[nodiscard]] CheckedResult<ParameterSet> check_parameters(const PolicySpec& spec,
                                                           std::span<const GivenParameter> given,
                                                           std::string_view file,
                                                           std::string_view place);

}  // namespace bubblesim::policy
