// Writes a form as a JSON Schema, draft 2020-12. A schema lacks the reader's own checks (a path to
// a missing file, a warm-up longer than the run), so that it accepts all that the reader accepts.
#pragma once

#include <functional>
#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/schema/form.hpp"

namespace bubblesim::schema {

// The JSON Schema of one key. Inside of sim/schema.

/// The schema of the objects at a path.
using ObjectSchema = std::function<Json(const std::string& path)>;

/// `path`: of the object that has the key. The description gives range, unit and default.
[[nodiscard]] Json key_schema(const std::string& path, const std::string& key,
                              const KeyForm& form, const ObjectSchema& object_schema);

struct Heading {
  std::string title;
  std::string description;
};

/// `definitions`: an object with the forms that other code checks (ObjectReader::defined_by), by
/// name. Objects shared by several keys become definitions, too.
[[nodiscard]] Json write_schema(const Form& form, const Heading& heading, Json definitions);

}  // namespace bubblesim::schema
