#include "traces/import/kineto_metadata.hpp"

#include <simdjson.h>

#include <array>
#include <utility>

#include "traces/import/json_fields.hpp"
#include "traces/import/kineto_counters.hpp"
#include "traces/timeline_mark.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::array<std::string_view, 11> kWanted{
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds",
    "cupti_version", "cuda_runtime_version", "cuda_driver_version", "roctracer_version",
    "hip_runtime_version", "traceName", "otherData"};

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

bool is_wanted_metadata(std::string_view key) {
  for (const std::string_view wanted : kWanted) {
    if (key == wanted) return true;
  }
  return false;
}

void KinetoMetadataReader::add(std::string_view key, std::string_view json) {
  values_[std::string(key)] = std::string(json);
}

KinetoMetadata KinetoMetadataReader::finish(CounterSet& counters) const {
  KinetoMetadata out;
  const auto read = [&](std::string_view key, auto&& reader) {
    const auto found = values_.find(key);
    if (found != values_.end() && !reader(std::string_view(found->second), out)) {
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
    const auto found = values_.find(key);
    if (found != values_.end() && found->second.size() < 32) out.tool += label + found->second;
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

}  // namespace bubblesim::traces
