#include "sim/hardware/gpu_spec_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::hardware {
namespace {

void report_shared_names(const std::vector<DeviceFile>& devices, Errors& errors) {
  std::map<std::string, std::string> owner;
  for (const DeviceFile& device : devices) {
    for (std::size_t i = 0; i < device.recorded_names.size(); ++i) {
      const auto [at, fresh] = owner.try_emplace(device.recorded_names[i], device.path);
      if (fresh) continue;
      errors.push_back(Error{device.path, "/recorded_names/value/" + std::to_string(i),
                             quote_found(device.recorded_names[i]) + " is also in " + at->second});
    }
  }
}

bool equal_names(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

CheckedResult<DeviceFile> read_device_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(DeviceFile device, read_whole_file(path, read_constants));
  device.spec.id = data_file_id(path);
  device.path = path;
  return device;
}

CheckedResult<std::vector<DeviceFile>> read_device_folder(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<DeviceFile> devices,
                             read_data_folder(folder, "device", read_device_file));
  Errors errors;
  report_shared_names(devices, errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return devices;
}

CheckedResult<DeviceFile> find_device_file(std::string_view name, const std::string& folder) {
  const auto path = find_data_file(name, folder, "device");
  if (path) return read_device_file(*path);
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices, read_device_folder(folder));
  if (const auto match = match_recorded_name(name, devices)) return **match;
  return tl::make_unexpected(path.error());
}

CheckedResult<GpuSpec> find_gpu_spec(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(DeviceFile device, find_device_file(name, folder));
  return std::move(device.spec);
}

Result<const DeviceFile*> match_recorded_name(std::string_view recorded,
                                              std::span<const DeviceFile> devices) {
  std::vector<std::string> names;
  for (const DeviceFile& device : devices) {
    for (const std::string& name : device.recorded_names) {
      if (equal_names(name, recorded)) return &device;
      names.push_back(name);
    }
  }
  return fail(unknown_name_message("recorded device", recorded, names));
}

namespace {

using std::string_view;

double share(ObjectReader& parent, string_view key) {
  return number(parent, key, "share", {0.0, 1.0});
}

std::uint64_t bytes(ObjectReader& parent, string_view key, std::uint64_t least) {
  return constant(parent, key).bytes("value", {Bytes{least}}).value;
}

/// A second is far beyond any latency of a device.
Range<Duration> from(Duration least) { return {least, std::chrono::seconds(1)}; }

Duration duration(ObjectReader& parent, string_view key, Duration least) {
  return constant(parent, key).duration("value", from(least));
}

/// What a constant chooses that may be left out.
template <class Value, std::size_t kCount>
Value choice_or(ObjectReader& root, string_view key,
                const std::array<Choice<Value>, kCount>& choices, Value otherwise) {
  ObjectReader reader = constant(root, key, Presence::kOptional);
  return reader.present() ? reader.choice("value", choices) : otherwise;
}

// "9.0".
void read_capability(ObjectReader& root, GpuSpec& spec) {
  ObjectReader reader = constant(root, "compute_capability");
  if (!reader.present()) return;
  const std::string text = reader.text("value");
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, spec.compute_major);
  const bool point = major.ec == std::errc{} && major.ptr != end && *major.ptr == '.';
  const auto minor = point ? std::from_chars(major.ptr + 1, end, spec.compute_minor) : major;
  if (!point || minor.ec != std::errc{} || minor.ptr != end) {
    reader.fault("value", "expected a compute capability such as \"9.0\"");
  }
}

SmSpec read_sm(ObjectReader& root) {
  ObjectReader reader = root.child("sm");
  SmSpec sm;
  sm.max_threads = count(reader, "max_threads", "threads");
  sm.max_blocks = count(reader, "max_blocks", "blocks");
  sm.max_warps = count(reader, "max_warps", "warps");
  sm.warp_size = count(reader, "warp_size", "threads");
  sm.registers = count(reader, "registers", "registers");
  sm.register_unit = count(reader, "register_unit", "registers");
  sm.warp_allocation_unit = count(reader, "warp_allocation_unit", "warps");
  sm.shared_memory_bytes = bytes(reader, "shared_memory", 1);
  sm.shared_memory_unit_bytes = bytes(reader, "shared_memory_unit", 1);
  sm.shared_memory_reserved_bytes = bytes(reader, "shared_memory_reserved", 0);
  const auto threads = std::uint64_t{sm.max_warps} * sm.warp_size;
  if (reader.present() && threads != sm.max_threads) {
    reader.fault("max_threads", "found " + std::to_string(sm.max_threads) + "; expected " +
                                std::to_string(threads) + ", max_warps times warp_size");
  }
  return sm;
}

ContentionSpec read_contention(ObjectReader& root) {
  ObjectReader reader = root.child("contention");
  return {.compute_kernel_dram_share = share(reader, "compute_kernel_dram_share"),
          .memory_kernel_dram_share = share(reader, "memory_kernel_dram_share"),
          .unknown_kernel_dram_share = share(reader, "unknown_kernel_dram_share"),
          .compute_kernel_issue_share = share(reader, "compute_kernel_issue_share"),
          .memory_kernel_issue_share = share(reader, "memory_kernel_issue_share"),
          .unknown_kernel_issue_share = share(reader, "unknown_kernel_issue_share"),
          .compute_kernel_memory_boundness = share(reader, "compute_kernel_memory_boundness"),
          .memory_kernel_memory_boundness = share(reader, "memory_kernel_memory_boundness"),
          .unknown_kernel_memory_boundness = share(reader, "unknown_kernel_memory_boundness"),
          .l2_slowdown = number(reader, "l2_slowdown", "slowdown per share", {0.0, 10.0})};
}

constexpr std::array<Choice<ClientOrder>, 2> kOrders{
    {{"even", ClientOrder::kEven}, {"arrival", ClientOrder::kArrival}}};
constexpr std::array<Choice<LoneSlice>, 2> kSlices{
    {{"expired", LoneSlice::kExpired}, {"renewed", LoneSlice::kRenewed}}};

PartSpec read_part(ObjectReader& root) {
  ObjectReader reader = root.child("part", Presence::kOptional);
  if (!reader.present()) return {};
  return {number(reader, "dram_saturating_sms", "share", {0.01, 1.0}),
          number(reader, "dark_clock_gain", "ratio", {1.0, 3.0})};
}

// At least what its slices have, at most the whole GPU.
void read_instance(ObjectReader& instances, std::uint32_t slices, std::uint32_t all,
                   MigGeometry& out) {
  const std::string profile = std::to_string(slices) + "g";
  ObjectReader reader = constant(instances, profile, Presence::kOptional);
  if (!reader.present()) return;
  check_unit(reader, "SMs");
  const auto sms = reader.integer<std::uint32_t>("value", {1, kMaxCount});
  const std::uint32_t least = slices * out.slice_sms;
  if (sms < least || sms > all) {
    reader.fault("value", "found " + std::to_string(sms) + "; expected " + std::to_string(least) +
                              " to " + std::to_string(all) +
                              ", what its slices have and what the GPU has");
  }
  out.instance_sms[slices] = sms;
}

MigGeometry read_mig(ObjectReader& root, std::uint32_t all) {
  ObjectReader reader = root.child("mig", Presence::kOptional);
  if (!reader.present()) return {};
  MigGeometry out{count(reader, "compute_slices", "slices"),
                  count(reader, "memory_slices", "slices"), count(reader, "slice_sms", "SMs"), {}};
  ObjectReader instances = reader.child("instances", Presence::kOptional);
  if (!instances.present()) return out;
  for (std::uint32_t slices = 1; slices < out.instance_sms.size(); ++slices) {
    read_instance(instances, slices, all, out);
  }
  return out;
}

PowerSpec read_power(ObjectReader& root) {
  ObjectReader reader = root.child("power", Presence::kOptional);
  if (!reader.present()) return {};
  const Range<double> watts{0.001, 1e5};
  const Range<double> clocks{1, 1e5};
  PowerSpec out;
  out.idle_w = number(reader, "idle", "W", watts);
  out.limit_w = number(reader, "limit", "W", watts);
  out.full_clock_mhz = number(reader, "full_clock", "MHz", clocks);
  out.least_clock_mhz = number(reader, "least_clock", "MHz", clocks);
  out.clock_step_mhz = number(reader, "clock_step", "MHz", clocks);
  out.voltage_floor_mhz = number(reader, "voltage_floor", "MHz", clocks);
  out.voltage_slope = number(reader, "voltage_slope", "rise per rise", {0, 10});
  out.compute_kernel_w = number(reader, "compute_kernel", "W", watts);
  out.memory_kernel_w = number(reader, "memory_kernel", "W", watts);
  out.unknown_kernel_w = number(reader, "unknown_kernel", "W", watts);
  out.memory_clock_share = share(reader, "memory_clock_share");
  if (out.least_clock_mhz > out.full_clock_mhz) {
    reader.fault("least_clock", "is above full_clock; expected at most that");
  }
  return out;
}

void read_latencies(ObjectReader& root, GpuSpec& spec) {
  constexpr Duration kNone{0};
  spec.launch_latency = duration(root, "launch_latency", kNone);
  spec.stream_gap = duration(root, "stream_gap", kNone);
  ObjectReader graph = constant(root, "graph_gap", Presence::kOptional);
  if (graph.present()) spec.graph_gap = graph.duration("value", from(kNone));
  spec.sync_latency = duration(root, "sync_latency", kNone);
  spec.completion_notice = duration(root, "completion_notice", kNone);
  spec.time_slice = duration(root, "time_slice", Duration{1});
  spec.context_switch = duration(root, "context_switch", kNone);
  spec.client_switch = duration(root, "client_switch", kNone);
  ObjectReader empty = constant(root, "context_switch_empty", Presence::kOptional);
  if (!empty.present()) return;
  spec.context_switch_empty = empty.duration("value", from(kNone));
  if (*spec.context_switch_empty > spec.context_switch) {
    empty.fault("value", "is above context_switch; expected at most that");
  }
}

}  // namespace

DeviceFile read_constants(ObjectReader& root) {
  DeviceFile out;
  GpuSpec& spec = out.spec;
  ObjectReader name = constant(root, "name");
  spec.name = name.text("value");
  if (name.present() && spec.name.empty()) name.fault("value", "expected the device's name");
  ObjectReader recorded = constant(root, "recorded_names");
  out.recorded_names = recorded.texts("value");
  read_capability(root, spec);
  spec.sm_count = count(root, "sm_count", "SMs");
  spec.tpc_sms = count(root, "tpc_sms", "SMs");
  spec.sm = read_sm(root);
  spec.memory = Bytes{bytes(root, "memory", 1)};
  spec.dram_bandwidth =
      constant(root, "dram_bandwidth").rate("value", {BytesPerSecond{1}, BytesPerSecond{1e15}});
  spec.dram_reach = number(root, "dram_reach", "share", {0.01, 1.0});
  spec.host_bandwidth =
      constant(root, "host_bandwidth").rate("value", {BytesPerSecond{1}, BytesPerSecond{1e15}});
  spec.copy_engines = count(root, "copy_engines", "engines");
  read_latencies(root, spec);
  spec.lone_slice = choice_or(root, "lone_slice", kSlices, LoneSlice::kExpired);
  spec.client_order = choice_or(root, "client_order", kOrders, ClientOrder::kArrival);
  spec.contention = read_contention(root);
  spec.part = read_part(root);
  spec.mig = read_mig(root, spec.sm_count);
  spec.power = read_power(root);
  root.finish();
  return out;
}

}  // namespace bubblesim::hardware
