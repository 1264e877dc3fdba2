// The one file that includes the JSON library. Objects keep the order in which keys were added,
// so that written files are the same bytes every time.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/base/json_fwd.hpp"
