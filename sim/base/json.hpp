// The one file that includes the JSON library. Objects keep the order in which keys were added,
// so that written files are the same bytes every time.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "sim/base/json_fwd.hpp"

namespace bubblesim {

/// `json` on one line. Bytes that are not UTF-8, as names in users' files may have, become U+FFFD;
/// the library's own `dump` throws.
[[nodiscard]] std::string compact_text(const Json& json);

/// `json` on lines, `indent` spaces a level; bytes that are not UTF-8 as above.
[[nodiscard]] std::string indented_text(const Json& json, int indent);

/// A list of what `make` makes of each item.
template <class Items, class Make>
[[nodiscard]] Json list_json(const Items& items, const Make& make) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

}  // namespace bubblesim
