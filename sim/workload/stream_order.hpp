// The operations that precede the next action on a stream: the stream's last operation, operations
// that the stream was since told to wait for, and operations that the legacy default stream puts
// before it. Internal to the builder.
//
// An action is a launch, an event's record or a wait for an event. An action on the legacy default
// stream comes after all earlier actions of blocking streams, and before all their later ones (CUDA
// Runtime API, "Stream synchronization behavior").
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

/// Walks a draft in the order of its calls.
class StreamOrder {
 public:
  /// At most one operation for each stream: its end implies that of all earlier ones of the stream.
  using Befores = std::vector<Before>;

  /// In a repeating pass, actions also follow operations of the previous pass.
  explicit StreamOrder(const Draft& draft);

  /// Whether a default stream and a stream that blocks with it are in use.
  [[nodiscard]] bool has_default_stream() const { return !blocking_.empty(); }
  /// Takes the records and waits called before `at`.
  void reach(TraceTime at);
  /// Takes the launch of an operation and returns the preceding operations, valid until the next
  /// launch.
  const Befores& launch(std::uint32_t op);
  /// The operations that a synchronisation of the stream waits for.
  [[nodiscard]] Befores awaited_on(std::uint32_t stream) const;
  /// The operations that a wait for the event's last record waits for; null: no known record of the
  /// event names its stream.
  [[nodiscard]] const Befores* awaited_for(std::uint64_t event) const;

 private:
  void collect();
  void walk_pass();
  void act(const traces::HostCall& call);
  void enter(std::uint32_t stream);
  void leave(std::uint32_t stream);
  void keep_last(Befores& befores, Before added) const;
  [[nodiscard]] std::size_t stream_of(Before before) const;

  const Draft& draft_;
  std::vector<std::uint32_t> actions_;   ///< records and waits: into RankTrace::host_calls
  std::size_t next_ = 0;                 ///< into actions_
  std::vector<Befores> tails_;           ///< by stream: the operations before its next action
  Befores launched_;                     ///< the operations before the last launch
  std::vector<std::vector<std::uint32_t>> blocking_;  ///< by default stream; empty: none in use
  std::unordered_map<std::uint64_t, Befores> events_;  ///< by event, at its last record
};

}  // namespace bubblesim::workload
