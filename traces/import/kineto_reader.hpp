// Walks a Kineto JSON text once: top-level values to the metadata, events to the recorder, damage
// to the counters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/import/kineto_metadata.hpp"
#include "traces/import/kineto_records.hpp"
#include "traces/import/text_window.hpp"

namespace bubblesim::traces {

/// What was seen of the text as a whole, for the fault messages of files that are refused.
struct KinetoTextShape {
  enum class Root { kObject, kArray, kOther };
  Root root = Root::kOther;
  std::vector<std::string> keys;  ///< top-level keys, at most 32
  std::string first_bytes;        ///< at most 512
  bool has_events_array = false;
  std::uint64_t events = 0;       ///< objects read in it
};

class KinetoReader {
 public:
  explicit KinetoReader(TextWindow& window) : window_(window) {}

  /// Reads to the end of the text, or until it is clear that it has no events.
  void run();

  [[nodiscard]] const KinetoTextShape& shape() const { return shape_; }
  [[nodiscard]] const KinetoMetadataReader& metadata() const { return metadata_; }
  /// Damage met on the way.
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
  void mark_truncated();
  void count(const CounterSpec& spec) { counts_.add(spec); }

  TextWindow& window_;
  KinetoRecorder recorder_;
  KinetoMetadataReader metadata_;
  KinetoTextShape shape_;
  CounterSet counts_;
};

}  // namespace bubblesim::traces
