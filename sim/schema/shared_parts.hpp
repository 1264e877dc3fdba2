// Objects that a schema would say several times become definitions. Inside of sim/schema.
#pragma once

#include "sim/base/json_fwd.hpp"

namespace bubblesim::schema {

/// Replaces every large object schema that occurs more than once by a reference to a definition
/// named after the first key that has it.
void take_out_shared(Json& schema, Json& definitions);

}  // namespace bubblesim::schema
