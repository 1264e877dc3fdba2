#include "traces/import/kernel_args.hpp"

#include <algorithm>
#include <array>

namespace bubblesim::traces {
namespace {

/// More blocks than this is damage: 2^40 blocks of one warp-cycle each would run for minutes.
constexpr double kMostBlocks = 1e12;

/// "[8, 1, 1]" of positive numbers.
std::optional<std::array<std::uint32_t, 3>> parse_dimensions(std::string_view text) {
  std::array<std::uint32_t, 3> out{};
  std::size_t count = 0;
  const bool read = for_each_in_list(text, [&](std::uint32_t dimension) {
    if (count == out.size() || dimension == 0) return false;
    out[count++] = dimension;
    return true;
  });
  return read && count == out.size() ? std::optional(out) : std::nullopt;
}

bool sensible(const LaunchShape& shape) {
  double blocks = 1;
  double threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    blocks *= shape.grid[i];
    threads *= shape.block[i];
  }
  return blocks <= kMostBlocks && threads <= 1024;
}

template <class To>
To saturated(std::optional<std::uint64_t> value) {
  constexpr std::uint64_t kMost = std::numeric_limits<To>::max();
  return static_cast<To>(std::min(value.value_or(0), kMost));
}

}  // namespace

bool ShapeFields::take(std::string_view key, const JsonValue& value) {
  if (key == "grid") grid = parse_dimensions(value.text);
  else if (key == "block") block = parse_dimensions(value.text);
  else if (key == "shared memory") shared = saturated<std::uint32_t>(to_unsigned(value));
  else if (key == "registers per thread") {
    registers = saturated<std::uint16_t>(to_unsigned(value));
  }
  else return false;
  return true;
}

std::optional<LaunchShape> ShapeFields::shape() const {
  if (!grid || !block) return std::nullopt;
  const LaunchShape launch{*grid, *block, registers, shared};
  return sensible(launch) ? std::optional(launch) : std::nullopt;
}

namespace {

void read_common(std::string_view key, const JsonValue& value, DeviceOpArgs& out) {
  if (key == "device") out.device = to_unsigned(value);
  else if (key == "stream") out.stream = to_unsigned(value);
  else if (key == "copy kind") out.copy = copy_direction(value.text);
  else if (key == "bytes") out.bytes = to_unsigned(value).value_or(0);
  else if (key == "graph node id") out.graph_node = to_unsigned(value).value_or(0);
  else if (key == "priority") {
    const auto priority = to_signed(value).value_or(0);
    if (priority > -1000 && priority < 1000) out.priority = static_cast<std::int32_t>(priority);
  }
}

void read_collective(std::string_view key, const JsonValue& value, DeviceOpArgs& out) {
  if (key == "Collective name") out.collective = value.text;
  else if (key == "In msg nelems" || key == "In msg size") out.elements_in = to_unsigned(value);
  else if (key == "dtype") out.dtype = value.text;
  else if (key == "Group size") out.group_size = to_unsigned(value);
  else if (key == "Process Group Name") out.group = value.text;
  else if (key == "Process Group Ranks") out.group_ranks = value.text;
  else if (key == "Seq") out.sequence = to_unsigned(value);
  else if (key == "Src Rank") out.from = to_unsigned(value);
  else if (key == "Dst Rank") out.to = to_unsigned(value);
  else if (key == "Rank") out.rank = to_unsigned(value);
}

}  // namespace

bool LaunchId::take(std::string_view key, const JsonValue& value) {
  if (key == "correlation") correlation = to_unsigned(value).value_or(0);
  else if (key == "External id") external = to_unsigned(value).value_or(0);
  else return false;
  return true;
}

DeviceOpArgs read_device_op_args(std::string_view args, StringRule rule) {
  DeviceOpArgs out;
  ShapeFields shape;
  LaunchId id;
  std::optional<std::uint64_t> drawn_from;  // where `stream` is a lane of PyTorch's `graph_lanes`
  const auto take = [&](std::string_view key, const JsonValue& value) {
    if (key.empty() || id.take(key, value) || shape.take(key, value)) return;
    // Kineto writes its own fields in lower case; PyTorch's collective fields start in upper case.
    if (key == "original_stream") drawn_from = to_unsigned(value);
    else if (key.front() >= 'a' && key != "dtype") read_common(key, value, out);
    else read_collective(key, value, out);
  };
  out.repeats = each_field(args, take, rule).repeats();
  out.correlation = id.value();
  out.shape = shape.shape();
  if (drawn_from) out.stream = drawn_from;
  return out;
}

CopyDirection copy_direction(std::string_view name) {
  struct Named {
    std::string_view part;
    CopyDirection direction;
  };
  static constexpr std::array kNames{
      Named{"HtoD", CopyDirection::kHostToDevice},   Named{"DtoH", CopyDirection::kDeviceToHost},
      Named{"DtoD", CopyDirection::kDeviceToDevice}, Named{"PtoP", CopyDirection::kPeerToPeer},
      Named{"HtoH", CopyDirection::kHostToHost},
      Named{"HostToDevice", CopyDirection::kHostToDevice},
      Named{"DeviceToHost", CopyDirection::kDeviceToHost},
      Named{"DeviceToDevice", CopyDirection::kDeviceToDevice}};
  for (const Named& entry : kNames) {
    if (name.find(entry.part) != std::string_view::npos) return entry.direction;
  }
  return CopyDirection::kNone;
}

}  // namespace bubblesim::traces
