// Reads a Kineto JSON text once: top-level values go to the metadata, events to the recorder,
// damage to the counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/import/kineto_records.hpp"
#include "traces/import/text_window.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

// The metadata beside `traceEvents`: the device, the job, the clock's base, the writer of the file.

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
  bool own_timeline = false;  ///< bubblesim wrote the file, for viewers
};

/// A list of ranks: "[0, 1, 2]", written as an array or as a string. Nothing for a truncated
/// ("[0, 1, ...]") or wrong list.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_rank_list(std::string_view text);

/// The top-level structure of the text, for the messages about refused files.
struct KinetoTextShape {
  enum class Root { kObject, kArray, kOther };
  Root root = Root::kOther;
  std::vector<std::string> keys;  ///< top-level keys, at most 32
  std::string first_bytes;        ///< at most 512
  bool has_events_array = false;
  bool truncated = false;         ///< the text ends inside its last value
  std::uint64_t events = 0;       ///< objects read from the array of events
};

class KinetoReader {
 public:
  explicit KinetoReader(TextWindow& window) : window_(window) {}

  /// Reads to the end of the text, or until it is clear that the text has no events.
  void run();

  [[nodiscard]] const KinetoTextShape& shape() const { return shape_; }
  /// Counts what cannot be read.
  [[nodiscard]] KinetoMetadata metadata(CounterSet& counters) const;
  /// Counts of the damage found by run().
  [[nodiscard]] const CounterSet& counts() const { return counts_; }
  [[nodiscard]] KinetoRecords take_records() { return recorder_.take(); }

 private:
  enum class Step { kNext, kEnd };

  void read_object();
  [[nodiscard]] Step read_member();
  [[nodiscard]] Step recover_member();
  void read_events();
  [[nodiscard]] Step read_event_here();
  [[nodiscard]] Step pass_over_value();
  [[nodiscard]] Step recover_event();
  [[nodiscard]] bool repair_event(std::size_t limit);
  void end_of_text();
  void end_of_document();
  void count(const CounterSpec& spec) { counts_.add(spec); }

  TextWindow& window_;
  KinetoRecorder recorder_;
  std::map<std::string, std::string, std::less<>> metadata_;  ///< values as written, by key
  KinetoTextShape shape_;
  CounterSet counts_;
};

}  // namespace bubblesim::traces
