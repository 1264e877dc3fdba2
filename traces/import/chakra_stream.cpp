// The protobuf form: messages, each behind its length as a varint.
#include <algorithm>
#include <limits>
#include <optional>

#include "traces/import/chakra_counters.hpp"
#include "traces/import/chakra_messages.hpp"
#include "traces/import/chakra_reader.hpp"

namespace bubblesim::traces::chakra {
namespace {

constexpr std::size_t kLongestVarint = 10;
constexpr unsigned char kVersionTag = 0x0a;   // GlobalMetadata: field 1, with a length
constexpr unsigned char kAttributeTag = 0x12; // GlobalMetadata: field 2, with a length
constexpr unsigned char kIdTag = 0x08;        // Node: field 1, a varint
constexpr unsigned char kNameTag = 0x12;      // Node: field 2, with a length
constexpr unsigned char kTypeTag = 0x18;      // Node: field 3, of one without id and name

struct Varint {
  std::uint64_t value = 0;
  std::size_t length = 0;
};

/// Nothing: the bytes end inside it, or it is longer than a varint can be.
std::optional<Varint> varint_at(std::string_view bytes, std::size_t at) {
  Varint out;
  while (out.length < kLongestVarint && at + out.length < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[at + out.length]);
    out.value |= std::uint64_t{byte & 0x7fU} << (7 * out.length);
    ++out.length;
    if ((byte & 0x80U) == 0) return out;
  }
  return std::nullopt;
}

bool hold(TextWindow& window, std::size_t bytes) {
  while (window.text().size() < bytes) {
    if (!window.more()) return false;
  }
  return true;
}

bool is_tag(std::string_view head, std::size_t at, unsigned char first, unsigned char other) {
  const auto byte = static_cast<unsigned char>(head[at]);
  return byte == first || byte == other;
}

/// Takes the next message's bytes off the window. Nothing at the end, with what is wrong counted.
/// The bytes stay until the window is asked for more.
std::optional<std::string_view> next_message(TextWindow& window, std::size_t limit,
                                             CounterSet& counters) {
  static_cast<void>(hold(window, kLongestVarint));
  if (window.text().empty()) return std::nullopt;
  const auto length = varint_at(window.text(), 0);
  if (!length) {
    counters.add(window.text().size() < kLongestVarint ? kTruncated : kStreamBroken);
    return std::nullopt;
  }
  if (length->value > limit) {
    counters.add(kStreamBroken);
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(length->value);
  if (!hold(window, length->length + size)) {
    counters.add(kTruncated);
    return std::nullopt;
  }
  const std::string_view bytes = window.text().substr(length->length, size);
  window.advance(length->length + size);
  return bytes;
}

}  // namespace

bool is_chakra_stream(std::string_view head) {
  const auto first = varint_at(head, 0);
  if (!first || first->value > std::numeric_limits<std::int32_t>::max()) return false;
  std::size_t at = first->length;
  const std::size_t end = at + static_cast<std::size_t>(first->value);
  while (at < std::min(end, head.size())) {
    if (!is_tag(head, at, kVersionTag, kAttributeTag)) return false;
    const auto length = varint_at(head, at + 1);
    if (!length) return at + 1 + kLongestVarint > head.size() && end > head.size();
    if (length->value > end - at) return false;
    at += 1 + length->length + static_cast<std::size_t>(length->value);
  }
  if (at > end) return false;
  const auto second = varint_at(head, at);
  if (!second) return at > 1 && at >= head.size();
  if (second->value < 2) return false;
  at += second->length;
  return at >= head.size() || is_tag(head, at, kIdTag, kNameTag) ||
         is_tag(head, at, kTypeTag, kTypeTag);
}

void read_stream(TextWindow& window, std::size_t limit, File& file) {
  limit = std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max());
  CounterSet& counters = file.trace.counters;
  NodeMessageReader nodes;
  bool first = true;
  while (const auto bytes = next_message(window, limit, counters)) {
    const bool read = first ? read_metadata_message(*bytes, file)
                            : !bytes->empty() && nodes.read(*bytes, file);
    if (!read) counters.add(kDamagedNodes);
    first = false;
  }
}

}  // namespace bubblesim::traces::chakra
