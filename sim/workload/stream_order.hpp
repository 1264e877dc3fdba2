// What the next action on a stream comes after: the stream's last operation, what the stream was
// told to wait for since, and what the legacy default stream orders. Internal to the builder.
//
// An action is a launch, an event's record or a wait for an event. One on the legacy default stream
// comes after all that blocking streams were given before, and all that they are given later comes
// after it (CUDA Runtime API, "Stream synchronization behavior").
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/workload/program_draft.hpp"

namespace bubblesim::workload {

/// Walks a draft in the order of its calls.
class StreamOrder {
 public:
  /// At most one operation a stream: what comes before it there has ended when it has.
  using Befores = std::vector<Before>;

  /// A pass that repeats begins with what the pass before left.
  explicit StreamOrder(const Draft& draft);

  /// Whether a default stream and a stream that blocks with it are in use.
  [[nodiscard]] bool has_default_stream() const { return !blocking_.empty(); }
  /// Takes the records and waits called before `at`.
  void reach(TraceTime at);
  /// Takes the launch of an operation; gives what it comes after, valid until the next launch.
  const Befores& launch(std::uint32_t op);
  /// What a synchronisation of the stream waits for.
  [[nodiscard]] Befores awaited_on(std::uint32_t stream) const;
  /// What the event's last record stands for; null: a record that names event and stream is not
  /// known.
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
  std::vector<Befores> tails_;           ///< by stream: what its next action comes after
  Befores launched_;                     ///< what the last launch came after
  std::vector<std::vector<std::uint32_t>> blocking_;  ///< by default stream; empty: none in use
  std::unordered_map<std::uint64_t, Befores> events_;  ///< as last recorded
};

}  // namespace bubblesim::workload
