// The name of the JSON library's values, for headers that only pass them on. Whoever makes or
// reads one includes sim/base/json.hpp, in a .cpp file.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace bubblesim {

using Json = nlohmann::ordered_json;

}  // namespace bubblesim
