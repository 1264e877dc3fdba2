#include "sim/schema/shared_parts.hpp"

#include <map>
#include <string>
#include <utility>

#include "sim/base/json.hpp"

namespace bubblesim::schema {
namespace {

constexpr std::size_t kSmall = 400;  // bytes of JSON that are worth no reference

bool is_object_schema(const Json& schema) {
  return schema.is_object() && schema.contains("properties") && schema.contains("type");
}

class Sharer {
 public:
  explicit Sharer(Json& definitions) : definitions_(definitions) {}

  void count(const Json& schema) {
    if (is_object_schema(schema)) ++counts_[schema.dump()];
    for (const Json& part : schema) {
      if (part.is_structured()) count(part);
    }
  }

  void replace(Json& schema, const std::string& name) {
    if (is_object_schema(schema)) {
      std::string text = schema.dump();
      if (text.size() >= kSmall && counts_[text] > 1) {
        schema = {{"$ref", "#/$defs/" + define(std::move(text), schema, name)}};
        return;
      }
    }
    replace_inside(schema, name);
  }

 private:
  void replace_inside(Json& schema, const std::string& name) {
    if (!schema.is_structured()) return;
    for (auto& [key, part] : schema.items()) {
      if (key == "properties") {
        for (auto& [property, inner] : part.items()) replace(inner, property);
      } else {
        replace(part, name);
      }
    }
  }

  std::string define(std::string text, Json schema, const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(std::move(text), name);
    if (!fresh) return at->second;
    for (int next = 2; definitions_.contains(at->second); ++next) {
      at->second = name + "_" + std::to_string(next);
    }
    const std::string chosen = at->second;
    definitions_[chosen] = true;  // taken
    replace_inside(schema, name);
    definitions_[chosen] = std::move(schema);
    return chosen;
  }

  Json& definitions_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::string> names_;
};

}  // namespace

void take_out_shared(Json& schema, Json& definitions) {
  Sharer sharer(definitions);
  sharer.count(schema);
  for (auto& [key, part] : schema["properties"].items()) sharer.replace(part, key);
}

}  // namespace bubblesim::schema
