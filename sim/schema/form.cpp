#include "sim/schema/form.hpp"

#include <tuple>

namespace bubblesim::schema {

bool KeyForm::was_looked_for() const {
  for (const auto& [count, shape] : shapes) {
    if (std::holds_alternative<AnyShape>(shape)) return true;
  }
  return false;
}

std::vector<std::string> KeyForm::choices() const {
  std::vector<std::string> names;
  for (const auto& [count, shape] : shapes) {
    if (std::holds_alternative<AnyShape>(shape)) continue;
    const auto* choice = std::get_if<ChoiceShape>(&shape);
    if (choice == nullptr || count != JsonCount::kOne || !names.empty()) return {};
    names = choice->names;
  }
  return names;
}

bool Visit::operator<(const Visit& other) const {
  return std::tie(values, declared, required) <
         std::tie(other.values, other.declared, other.required);
}

std::string path_of(const std::string& object, std::string_view key, JsonCount count) {
  std::string path = object + "/" + std::string(key);
  return count == JsonCount::kList ? path + "/*" : path;
}

}  // namespace bubblesim::schema
