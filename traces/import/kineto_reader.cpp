#include "traces/import/kineto_reader.hpp"

#include <algorithm>
#include <array>
#include <simdjson.h>
#include <utility>

#include "traces/import/json_fields.hpp"
#include "traces/import/json_scan.hpp"
#include "traces/import/kineto_counters.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

/// Top-level keys that are read beside the events.
constexpr std::array<std::string_view, 9> kWanted{
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "cupti_version",
    "cuda_runtime_version", "roctracer_version", "hip_runtime_version", "otherData"};

/// Ranks and sizes beyond this are damage, not a cluster.
constexpr std::uint64_t kMostRanks = 1U << 24U;
constexpr std::int64_t kLatestBase = std::int64_t{1} << 61U;

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::uint64_t number_or_zero(const object& fields, std::string_view key) {
  std::uint64_t value = 0;
  return fields[key].get(value) == simdjson::SUCCESS ? value : 0;
}

std::uint32_t small_or_zero(const object& fields, std::string_view key) {
  const std::uint64_t value = number_or_zero(fields, key);
  return value <= UINT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

std::optional<std::uint32_t> rank_like(const object& fields, std::string_view key) {
  std::uint64_t value = 0;
  if (fields[key].get(value) != simdjson::SUCCESS || value >= kMostRanks) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::string text_of(const object& fields, std::string_view key) {
  std::string_view text;
  std::uint64_t number = 0;
  if (fields[key].get(text) == simdjson::SUCCESS) return std::string(text);
  if (fields[key].get(number) == simdjson::SUCCESS) return std::to_string(number);
  return {};
}

bool read_devices(std::string_view json, KinetoMetadata& out) {
  simdjson::dom::parser parser;
  array devices;
  if (parser.parse(json.data(), json.size()).get(devices) != simdjson::SUCCESS) return false;
  for (const element entry : devices) {
    object device;
    if (entry.get(device) != simdjson::SUCCESS) return false;
    DeviceInfo info;
    info.name = text_of(device, "name");
    info.sm_count = small_or_zero(device, "numSms");
    info.compute_major = small_or_zero(device, "computeMajor");
    info.compute_minor = small_or_zero(device, "computeMinor");
    info.memory_bytes = number_or_zero(device, "totalGlobalMem");
    out.devices[small_or_zero(device, "id")] = info;
  }
  return true;
}

ProcessGroup read_group(const object& fields) {
  ProcessGroup group;
  group.name = text_of(fields, "pg_name");
  group.size = rank_like(fields, "pg_size").value_or(0);
  element ranks;
  if (fields["ranks"].get(ranks) != simdjson::SUCCESS) return group;
  std::string_view text;
  std::string minified;
  if (ranks.get(text) != simdjson::SUCCESS) {
    minified = simdjson::minify(ranks);
    text = minified;
  }
  group.ranks = parse_rank_list(text).value_or(std::vector<std::uint32_t>{});
  return group;
}

bool read_distributed(std::string_view json, KinetoMetadata& out) {
  simdjson::dom::parser parser;
  object info;
  if (parser.parse(json.data(), json.size()).get(info) != simdjson::SUCCESS) return false;
  out.rank = rank_like(info, "rank");
  out.world_size = rank_like(info, "world_size");
  array groups;
  if (info["pg_config"].get(groups) == simdjson::SUCCESS) {
    for (const element entry : groups) {
      object group;
      if (entry.get(group) == simdjson::SUCCESS) out.groups.push_back(read_group(group));
    }
  }
  const bool rank_in_world = !out.rank || !out.world_size || *out.rank < *out.world_size;
  if (!rank_in_world) out.rank.reset();
  return rank_in_world;
}

bool read_base(std::string_view json, KinetoMetadata& out) {
  std::string_view digits = json;
  if (digits.size() >= 2 && digits.front() == '"') digits = digits.substr(1, digits.size() - 2);
  const auto base = to_signed({JsonTextKind::kScalar, digits});
  if (!base || *base < 0 || *base >= kLatestBase) return false;
  out.base_ns = *base;
  return true;
}

/// Notes of other tools say nothing here, whatever they look like.
bool read_notes(std::string_view json, KinetoMetadata& out) {
  simdjson::dom::parser parser;
  object notes;
  if (parser.parse(json.data(), json.size()).get(notes) != simdjson::SUCCESS) return true;
  out.own_timeline = text_of(notes, kTimelineMarkKey) == kTimelineMark;
  return true;
}

}  // namespace

KinetoMetadata KinetoReader::metadata(CounterSet& counters) const {
  KinetoMetadata out;
  const auto read = [&](std::string_view key, auto&& reader) {
    const auto found = metadata_.find(key);
    if (found != metadata_.end() && !reader(std::string_view(found->second), out)) {
      counters.add(kineto::kBadMetadata);
    }
  };
  read("deviceProperties", read_devices);
  read("distributedInfo", read_distributed);
  read("baseTimeNanoseconds", read_base);
  read("otherData", read_notes);
  out.tool = "kineto";
  for (const auto& [key, label] : {std::pair{"schemaVersion", " schema "},
                                   std::pair{"cupti_version", ", cupti "},
                                   std::pair{"cuda_runtime_version", ", cuda "},
                                   std::pair{"roctracer_version", ", roctracer "},
                                   std::pair{"hip_runtime_version", ", hip "}}) {
    const auto found = metadata_.find(key);
    if (found != metadata_.end() && found->second.size() < 32) out.tool += label + found->second;
  }
  return out;
}

std::optional<std::vector<std::uint32_t>> parse_rank_list(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  const bool read = for_each_in_list(text, [&ranks](std::uint32_t rank) {
    ranks.push_back(rank);
    return rank < kMostRanks;
  });
  return read ? std::optional(std::move(ranks)) : std::nullopt;
}

namespace {

constexpr std::size_t kMostKeys = 32;
constexpr std::size_t kFirstBytes = 512;
/// Damage behind the events with more text than this after it is not the end of a file.
constexpr std::size_t kMostTail = std::size_t{512} << 10;

char front(const TextWindow& window) { return window.text().front(); }

/// Whether an array of events goes on after `length` bytes. A quote inside a name may close an
/// event too early ("a"}"): then something else follows.
bool array_goes_on(TextWindow& window, std::size_t length) {
  std::size_t at = length;
  while (true) {
    const std::string_view text = window.text();
    while (at < text.size() && is_space(text[at])) ++at;
    if (at < text.size()) return text[at] == ',' || text[at] == ']' || text[at] == '{';
    if (!window.more()) return true;
  }
}

}  // namespace

void KinetoReader::run() {
  if (window_.text().empty()) static_cast<void>(window_.more());
  shape_.first_bytes = std::string(window_.text().substr(0, kFirstBytes));
  if (window_.text().starts_with("\xef\xbb\xbf")) window_.advance(3);
  if (!skip_space(window_)) return;
  if (front(window_) == '{') {
    shape_.root = KinetoTextShape::Root::kObject;
    window_.advance(1);
    read_object();
  } else if (front(window_) == '[') {
    shape_.root = KinetoTextShape::Root::kArray;
    window_.advance(1);
    read_events();
    end_of_document();
  }
}

// Where the document ends, the file does.
void KinetoReader::end_of_document() {
  if (skip_space(window_)) count(kineto::kAfterEnd);
}

void KinetoReader::read_object() {
  while (skip_space(window_)) {
    if (front(window_) == '}') {
      window_.advance(1);
      return end_of_document();
    }
    if (front(window_) == ',') {
      window_.advance(1);
      continue;
    }
    if (read_member() == Step::kEnd) return;
  }
  shape_.truncated = true;
}

KinetoReader::Step KinetoReader::read_member() {
  const Scan key_scan = front(window_) == '"' ? scan_value(window_) : Scan{ScanStatus::kDamaged, 0};
  if (key_scan.status != ScanStatus::kComplete) return recover_member();
  const std::string key(window_.text().substr(1, key_scan.length - 2));
  if (shape_.keys.size() < kMostKeys) shape_.keys.push_back(key.substr(0, 64));
  window_.advance(key_scan.length);
  if (!skip_space(window_) || front(window_) != ':') return recover_member();
  window_.advance(1);
  if (!skip_space(window_)) return recover_member();
  if (key == "traceEvents" && front(window_) == '[') {
    window_.advance(1);
    read_events();
    return Step::kNext;
  }
  const Scan value = scan_value(window_);
  if (value.status != ScanStatus::kComplete || value.length == 0) return recover_member();
  if (std::ranges::find(kWanted, key) != kWanted.end()) {
    metadata_[key] = window_.text().substr(0, value.length);
  }
  window_.advance(value.length);
  return Step::kNext;
}

/// Goes on at the array of events, wherever it is; what lies before it is given up.
KinetoReader::Step KinetoReader::recover_member() {
  if (shape_.has_events_array) {
    // What follows the events is a few values: give up the rest.
    while (window_.text().size() < kMostTail && window_.more()) {
    }
    if (window_.at_end()) shape_.truncated = true;
    else count(kineto::kDamagedEvents);
    return Step::kEnd;
  }
  while (true) {
    const auto array = find_events_array(window_, 0);
    if (array) {
      count(kineto::kDamagedEvents);
      window_.advance(*array);
      read_events();
      return Step::kNext;
    }
    if (window_.at_end()) {
      shape_.truncated = true;
      return Step::kEnd;
    }
    // At the window's limit: keep enough to find a key that lies across.
    window_.advance(window_.text().size() - std::min<std::size_t>(window_.text().size(), 64));
  }
}

void KinetoReader::read_events() {
  shape_.has_events_array = true;
  while (skip_space(window_)) {
    const char next = front(window_);
    if (next == ']') {
      window_.advance(1);
      return;
    }
    if (next == ',') {
      window_.advance(1);
      continue;
    }
    const Step step = next == '{' ? read_event_here() : pass_over_value();
    if (step == Step::kEnd) return;
  }
  end_of_text();
}

void KinetoReader::end_of_text() {
  // A bare array may lack its end; an object that ends inside its events was cut.
  if (shape_.root == KinetoTextShape::Root::kArray) count(kineto::kArrayOpen);
  else shape_.truncated = true;
}

KinetoReader::Step KinetoReader::read_event_here() {
  const Scan scan = scan_value(window_);
  if (scan.status != ScanStatus::kComplete || !array_goes_on(window_, scan.length)) {
    return recover_event();
  }
  RawEvent event;
  const auto read =
      read_event(window_.text().substr(0, scan.length), StringRule::kStrict, event);
  if (read.status == EventStatus::kDamaged) return recover_event();
  ++shape_.events;
  recorder_.add(event, read.status);
  window_.advance(scan.length);
  return Step::kNext;
}

/// A whole value that is no event hides nothing of what follows: no text is missing.
KinetoReader::Step KinetoReader::pass_over_value() {
  const Scan value = scan_value(window_);
  const bool whole = value.status == ScanStatus::kComplete && value.length > 0;
  if (!whole || !array_goes_on(window_, value.length)) return recover_event();
  count(kineto::kDamagedEvents);
  window_.advance(value.length);
  return Step::kNext;
}

/// The text at the anchor is no valid event. Repairs it up to the next event, or drops it.
KinetoReader::Step KinetoReader::recover_event() {
  const auto next = find_event_start(window_, 1);
  const std::size_t limit = next.value_or(window_.text().size());
  if (front(window_) == '{' && repair_event(limit)) return Step::kNext;
  if (next) {
    count(kineto::kDamagedEvents);
    window_.advance(*next);
    return Step::kNext;
  }
  const bool cut = window_.at_end();
  if (cut) shape_.truncated = true;
  else count(kineto::kDamagedEvents);
  window_.advance(window_.text().size());
  return cut ? Step::kEnd : Step::kNext;
}

bool KinetoReader::repair_event(std::size_t limit) {
  RawEvent event;
  const auto read = read_event(window_.text().substr(0, limit), StringRule::kRepair, event);
  if (read.status == EventStatus::kDamaged) return false;
  // An object that lacks what every event has is not one.
  if (event.phase == 0) return false;
  ++shape_.events;
  count(kineto::kRepairedEvents);
  recorder_.add(event, read.status);
  window_.advance(read.length);
  return true;
}

}  // namespace bubblesim::traces
