// What every page is put together with: texts that cannot become markup or script.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/json_fwd.hpp"

namespace bubblesim::report {

/// Compact JSON without "<", ">" and "&", so that no text in it ends the script that holds it. Text
/// that is no UTF-8 is replaced.
[[nodiscard]] std::string script_json(const Json& json);

/// Puts each text where the template names it as {{name}}; the texts themselves are not looked at.
[[nodiscard]] std::string filled_page(
    std::string_view page,
    std::initializer_list<std::pair<std::string_view, std::string_view>> texts);

}  // namespace bubblesim::report
