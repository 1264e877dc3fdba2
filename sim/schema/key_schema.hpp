// What one key may hold, as JSON Schema. Inside of sim/schema.
#pragma once

#include <functional>
#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// The schema of the objects at a path.
using ObjectSchema = std::function<Json(const std::string& path)>;

/// `path`: of the object that has the key. The description gives range, unit and default.
[[nodiscard]] Json key_schema(const std::string& path, const std::string& key,
                              const KeyForm& form, const ObjectSchema& object_schema);


}  // namespace bubblesim::schema
