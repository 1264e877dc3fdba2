// The kinds of config files that have a JSON Schema, and the readers that generate it. A new kind
// is an entry of schema_kinds(); configs/schema/README.md says how.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::app {

struct SchemaKind {
  std::string name;    ///< the schema is name.schema.json
  std::string folder;  ///< folder of configs for such files
  std::string what;    ///< "a GPU"
  /// Reads a document as a file of the kind; does not open the files that its paths name.
  std::function<Errors(const JsonDocument&)> read;
};

/// Keeps a reference to the policies.
[[nodiscard]] std::vector<SchemaKind> schema_kinds(const policy::Registry& policies);

/// The text of the schema's file.
[[nodiscard]] std::string schema_text(const SchemaKind& kind, const policy::Registry& policies);

}  // namespace bubblesim::app
