// Any bytes as a JSON configuration: read as every type in turn. It must not crash, and a
// document that parsed must give the same text when its raw form is parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/base/json_reader.hpp"
#include "sim/base/units.hpp"

namespace {

using bubblesim::Duration, bubblesim::Errors, bubblesim::JsonDocument, bubblesim::ObjectReader;
using bubblesim::Presence;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_key(ObjectReader& object, const std::string& key, std::size_t which);

void read_object(ObjectReader& object) {
  std::size_t which = 0;
  for (const std::string& key : object.keys()) read_key(object, key, which++);
}

void read_key(ObjectReader& object, const std::string& key, std::size_t which) {
  static_cast<void>(object.kind(key));
  switch (which % 8) {
    case 0: static_cast<void>(object.text(key, "fallback")); break;
    case 1: require(object.integer<std::uint16_t>(key, {3, 900}, 3) >= 3); break;
    case 2: require(object.number(key, {-1, 1}, 0) <= 1); break;
    case 3: require(object.duration(key, {Duration{5}}) >= Duration{5}); break;
    case 4: static_cast<void>(object.bytes(key)); break;
    case 5: static_cast<void>(object.rate(key)); break;
    case 6: static_cast<void>(object.texts(key, Presence::kOptional)); break;
    default: break;  // left unread: an unknown key
  }
  ObjectReader child = object.child(key, Presence::kOptional);
  read_object(child);
  for (ObjectReader& item : object.children(key, Presence::kOptional)) read_object(item);
}

void check_units(std::string_view text) {
  if (const auto span = bubblesim::parse_duration(text)) {
    require(bubblesim::parse_duration(bubblesim::format_duration(*span)) == *span);
  }
  if (const auto bytes = bubblesim::parse_bytes(text)) {
    require(bubblesim::parse_bytes(bubblesim::format_bytes(*bytes)) == *bytes);
  }
  if (const auto rate = bubblesim::parse_rate(text)) {
    require(bubblesim::parse_rate(bubblesim::format_rate(*rate)) == *rate);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  check_units(text);
  const auto document = JsonDocument::parse(text, "fuzz.json");
  if (!document) {
    require(!document.error().empty());
    return 0;
  }
  Errors errors;
  ObjectReader root = document->root(errors);
  for (const std::string& key : root.keys()) {
    const std::string raw = root.raw(key);
    Errors ignored;
    const auto again = JsonDocument::parse("{\"v\":" + raw + "}", "raw.json");
    require(again && again->root(ignored).raw("v") == raw);
  }
  read_object(root);
  root.finish();
  return 0;
}
