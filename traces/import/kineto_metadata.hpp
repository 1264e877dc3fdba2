// What stands beside `traceEvents`: the device, the job, the clock's base, what wrote the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// A process group of distributedInfo.
struct ProcessGroup {
  std::string name;
  std::uint32_t size = 0;
  std::vector<std::uint32_t> ranks;  ///< empty: not recorded or truncated
};

struct KinetoMetadata {
  std::map<std::uint32_t, DeviceInfo> devices;
  std::vector<ProcessGroup> groups;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world_size;
  std::int64_t base_ns = 0;
  std::string tool;
  bool own_timeline = false;  ///< the file says that bubblesim wrote it for viewers
};

/// Whether `add` wants this top-level key; other values need not be held.
[[nodiscard]] bool is_wanted_metadata(std::string_view key);

/// Collects top-level values in the order of the file, then reads them all.
class KinetoMetadataReader {
 public:
  /// `json`: the value as it stands in the file.
  void add(std::string_view key, std::string_view json);
  [[nodiscard]] KinetoMetadata finish(CounterSet& counters) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// A list of ranks: "[0, 1, 2]", written as an array or as a string. Nothing for a truncated
/// ("[0, 1, ...]") or wrong list.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_rank_list(std::string_view text);

}  // namespace bubblesim::traces
