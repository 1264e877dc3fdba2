#include "sim/sweep/config_edit.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::sweep {
namespace {

std::string unescape(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool escape = key[i] == '~' && i + 1 < key.size();
    if (escape && (key[i + 1] == '0' || key[i + 1] == '1')) {
      out += key[++i] == '0' ? '~' : '/';
    } else {
      out += key[i];
    }
  }
  return out;
}

// What an element of a list is called: a filler's or policy's name.
std::string name_of(const Json& element) {
  if (element.is_string()) return element.get<std::string>();
  const auto name = element.is_object() ? element.find("name") : element.end();
  if (!element.is_object() || name == element.end() || !name->is_string()) return {};
  return name->get<std::string>();
}

Result<std::size_t> element_of(const Json& list, const std::string& key,
                               const std::string& pointer) {
  if (const auto number = parse_number<std::size_t>(key)) {
    if (*number < list.size()) return *number;
    return fail({}, pointer, "found element " + key + " of a list of " +
                                 std::to_string(list.size()) + "; elements count from 0");
  }
  std::vector<std::string> names;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    names.push_back(name_of(list[i]));
    if (names.back() != key) continue;
    if (found) {
      return fail({}, pointer, "elements " + std::to_string(*found) + " and " +
                                   std::to_string(i) + " of the list are both named " +
                                   quote_found(key) + "; expected the number of one");
    }
    found = i;
  }
  if (found) return *found;
  return fail({}, pointer, unknown_name_message("element", key, names));
}

}  // namespace

Result<std::vector<std::string>> pointer_keys(std::string_view pointer) {
  std::vector<std::string> keys;
  if (pointer.size() < 2 || pointer.front() != '/') {
    return fail({}, {}, "found " + quote_found(pointer) +
                            "; expected a JSON pointer such as \"/fillers/0/memory\"");
  }
  for (std::size_t at = 1; at <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    keys.push_back(unescape(pointer.substr(at, end - at)));
    if (keys.back().empty()) {
      return fail({}, {}, "found " + quote_found(pointer) + ", a pointer with an empty key");
    }
    at = end + 1;
  }
  return keys;
}

const Json* find_value(const Json& config, std::string_view pointer) {
  const auto keys = pointer_keys(pointer);
  if (!keys) return nullptr;
  const Json* at = &config;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const std::string& key = (*keys)[i];
    if (at->is_array()) {
      const auto element = element_of(*at, key, {});
      if (!element) return nullptr;
      at = &(*at)[*element];
    } else if (at->is_object()) {
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else {
      const bool name = at->is_string() && key == "name" && i + 1 == keys->size() && i == 2 &&
                        keys->front() == "policies";
      return name ? at : nullptr;
    }
  }
  return at;
}

std::string numbered(const Json& config, const std::string& pointer) {
  const auto keys = pointer_keys(pointer);
  if (!keys) return pointer;
  Json::json_pointer out;
  const Json* at = &config;
  for (const std::string& key : *keys) {
    std::string name = key;
    const Json* next = nullptr;
    if (at != nullptr && at->is_array()) {
      if (const auto element = element_of(*at, key, {})) {
        name = std::to_string(*element);
        next = &(*at)[*element];
      }
    } else if (at != nullptr && at->is_object() && at->contains(key)) {
      next = &(*at)[key];
    }
    out /= name;
    at = next;
  }
  return out.to_string();
}

Result<void> set_value(Json& config, const std::string& pointer, const Json& value) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<std::string> keys, pointer_keys(pointer));
  Json* at = &config;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const bool policy = i == 2 && keys.front() == "policies" && at->is_string();
    if (policy) *at = Json{{"name", *at}};
    if (at->is_array()) {
      BUBBLESIM_ASSIGN_OR_RETURN(const std::size_t element, element_of(*at, key, pointer));
      at = &(*at)[element];
    } else if (at->is_object()) {
      at = &(*at)[key];
      if (at->is_null() && i + 1 < keys.size()) *at = Json::object();
    } else {
      return fail({}, pointer, "found " + quote_found(compact_text(*at)) +
                                   " on the way, which has no " + quote_found(key));
    }
  }
  *at = value;
  return {};
}

Result<store::Setting> parse_assignment(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  std::string pointer = text.substr(0, equals);
  if (!pointer.empty() && pointer.front() != '/') pointer.insert(0, 1, '/');
  if (equals == std::string::npos || !pointer_keys(pointer)) {
    return fail(option, {}, "found " + quote_found(text) +
                                "; expected a place of the run config and its value, such as "
                                "/duration=500ms or /fillers/0/arrivals/rate_per_s=80");
  }
  const std::string written = text.substr(equals + 1);
  Json value = Json::parse(written, nullptr, false);
  if (value.is_discarded()) value = written;
  return store::Setting{std::move(pointer), compact_text(value)};
}

std::string canonical_text(const Json& value) {
  // The library's plain objects are sorted by key.
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_at(const Json& config, std::string_view pointer) {
  const Json* value = find_value(config, pointer);
  return value == nullptr ? std::string("none") : canonical_text(*value);
}

}  // namespace bubblesim::sweep
