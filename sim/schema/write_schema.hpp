// A form as a JSON Schema, draft 2020-12. A schema does not hold a reader's own checks (a path that
// leads nowhere, a warm-up longer than the run); it accepts all that the reader accepts.
#pragma once

#include <functional>
#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/schema/form.hpp"

namespace bubblesim::schema {

// What one key may hold, as JSON Schema. Inside of sim/schema.

/// The schema of the objects at a path.
using ObjectSchema = std::function<Json(const std::string& path)>;

/// `path`: of the object that has the key. The description gives range, unit and default.
[[nodiscard]] Json key_schema(const std::string& path, const std::string& key,
                              const KeyForm& form, const ObjectSchema& object_schema);

struct Heading {
  std::string title;
  std::string description;
};

/// `definitions`: the forms of what is checked elsewhere (ObjectReader::defined_by), by name; an
/// object. Objects that several keys have in common become definitions too.
[[nodiscard]] Json write_schema(const Form& form, const Heading& heading, Json definitions);

}  // namespace bubblesim::schema
