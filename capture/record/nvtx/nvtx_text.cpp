#include "capture/record/nvtx/nvtx_text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include "sim/base/number_text.hpp"
#include "sim/base/utf8.hpp"

namespace bubblesim::capture {

void cut(std::string& text, std::size_t limit) { text.resize(uncut_length(text, limit)); }

std::string name_of(const char* text, std::size_t limit) {
  if (text == nullptr) return {};
  std::size_t length = ::strnlen(text, limit);
  // Reads no further than the limit: a character that crosses it is left out.
  if (length == limit) {
    std::size_t lead = length;
    while (lead > 0 && length - lead < 3 && continues_character(text[lead - 1])) --lead;
    if (lead > 0 && length_by_lead(text[lead - 1]) > length - lead + 1) length = lead - 1;
  }
  std::string out = repaired_utf8({text, length});
  cut(out, limit);
  return out;
}

std::string name_of(const wchar_t* text, std::size_t limit) {
  std::string out;
  if (text == nullptr) return out;
  for (; *text != L'\0' && out.size() <= limit; ++text) {
    append_character(out, static_cast<std::uint32_t>(*text));
  }
  cut(out, limit);
  return out;
}

namespace {

using traces::CollectiveKind;

constexpr std::string_view kPrefix = "bubblesim.collective";
constexpr std::size_t kMostPeers = 65'536;

constexpr std::array<std::pair<std::string_view, CollectiveKind>, 9> kOperations{{
    {"all_reduce", CollectiveKind::kAllReduce},
    {"all_gather", CollectiveKind::kAllGather},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"broadcast", CollectiveKind::kBroadcast},
    {"reduce", CollectiveKind::kReduce},
    {"all_to_all", CollectiveKind::kAllToAll},
    {"send", CollectiveKind::kSend},
    {"recv", CollectiveKind::kRecv},
    {"barrier", CollectiveKind::kBarrier},
}};

CollectiveKind kind_of(std::string_view operation) {
  for (const auto& [name, kind] : kOperations) {
    if (name == operation) return kind;
  }
  return CollectiveKind::kUnknown;
}

/// Takes a whole decimal number from the front of `text`.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

/// "0-7", "3-63/4", "0,3,5"; empty: the text has none of these forms.
std::vector<std::uint32_t> ranks_of(std::string_view text) {
  std::vector<std::uint32_t> out;
  while (!text.empty() && out.size() < kMostPeers) {
    const auto first = take_number<std::uint32_t>(text);
    if (!first) return {};
    std::uint32_t last = *first, step = 1;
    if (take(text, '-')) {
      const auto end = take_number<std::uint32_t>(text);
      if (!end) return {};
      last = *end;
      if (take(text, '/')) step = take_number<std::uint32_t>(text).value_or(0);
    }
    if (step == 0 || last < *first) return {};
    for (std::uint64_t rank = *first; rank <= last && out.size() < kMostPeers; rank += step) {
      out.push_back(static_cast<std::uint32_t>(rank));
    }
    if (!text.empty() && !take(text, ',')) return {};
  }
  return out;
}

void read_key(std::string_view key, std::string_view value, CollectiveEvent& event) {
  if (key == "op") event.kind = kind_of(value);
  if (key == "bytes") event.bytes = parse_number<std::uint64_t>(value).value_or(0);
  if (key == "group") event.group = value;
  if (key == "size") event.group_size = parse_number<std::uint32_t>(value).value_or(0);
  if (key == "ranks") event.peers = ranks_of(value);
  if (key == "seq") {
    const auto sequence = parse_number<std::uint64_t>(value);
    event.sequence_recorded = sequence.has_value();
    event.sequence = sequence.value_or(0);
  }
}

}  // namespace

bool announces_collective(std::string_view text) {
  return text.substr(0, kPrefix.size()) == kPrefix &&
         (text.size() == kPrefix.size() || text[kPrefix.size()] == ' ');
}

CollectiveEvent read_announcement(std::string_view text) {
  CollectiveEvent event;
  event.source = traces::CollectiveSource::kStandIn;
  text.remove_prefix(kPrefix.size());
  while (take(text, ' ')) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(item.size());
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    read_key(item.substr(0, equals), item.substr(equals + 1), event);
  }
  return event;
}

}  // namespace bubblesim::capture
