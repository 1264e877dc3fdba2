// The type of the JSON library's values, for headers that only pass them on. A .cpp file that makes
// or reads such a value includes sim/base/json.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace bubblesim {

using Json = nlohmann::ordered_json;

}  // namespace bubblesim
