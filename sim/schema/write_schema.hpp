// A form as a JSON Schema, draft 2020-12. What a reader refuses by its own checks (a path that
// leads nowhere, a warm-up longer than the run) no schema says; what it accepts, the schema does.
#pragma once

#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/schema/form.hpp"

namespace bubblesim::schema {

struct Heading {
  std::string title;
  std::string description;
};

/// `definitions`: the forms of what is checked elsewhere (ObjectReader::defined_by), by name; an
/// object. Objects that several keys have in common become definitions too.
[[nodiscard]] Json write_schema(const Form& form, const Heading& heading, Json definitions);

}  // namespace bubblesim::schema
