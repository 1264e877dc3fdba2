// Places of a run config by JSON pointer: reading and setting them as a person means it. Inside of
// sim/sweep.
//
// Elements of lists are named by number or by their name: "/fillers/0/memory",
// "/fillers/chat/memory", "/policies/specinf/parameters/slice". A policy that is a name alone has
// its "name", and becomes an object when something in it is set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

/// The keys of a pointer, unescaped. Fault: it does not begin with "/", or has an empty key.
[[nodiscard]] Result<std::vector<std::string>> pointer_keys(std::string_view pointer);

/// The value at the place; null if there is none. Faults are not told apart from absence.
[[nodiscard]] const Json* find_value(const Json& config, std::string_view pointer);

/// The pointer with elements of lists by number, however it names them; as it is from where the
/// config has no such place on: pointers of one place have one such text.
[[nodiscard]] std::string numbered(const Json& config, const std::string& pointer);

/// Sets it; objects that are missing on the way are made. Fault, at `pointer`: an element that is
/// not there, a name that two elements have, a value on the way that has no keys.
[[nodiscard]] Result<void> set_value(Json& config, const std::string& pointer, const Json& value);

/// "/a/b=c" as a pointer and a value: JSON, and what is none is a text. The leading "/" may be left
/// out. Fault: no such form; `option` names it in the fault.
[[nodiscard]] Result<store::Setting> parse_assignment(const std::string& text,
                                               const std::string& option);

/// The text of a value in its shortest form, objects with their keys in alphabetical order: equal
/// values have equal texts.
[[nodiscard]] std::string canonical_text(const Json& value);

/// The text of the value at the place, "none" where there is none: for keys.
[[nodiscard]] std::string text_at(const Json& config, std::string_view pointer);

}  // namespace bubblesim::sweep
