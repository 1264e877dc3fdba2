// The operations of a model's pass at any step of a server, timed: kernels, and exchanges between
// the server's GPUs. Products are timed once for each number of tokens, heads for each number of
// rows; attention anew for each step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/program/program.hpp"
#include "sim/synth/profile_table.hpp"
#include "sim/synth/server_exchanges.hpp"
#include "sim/synth/server_plan.hpp"

namespace bubblesim::synth {

/// Which tokens of a pass have logits.
enum class LogitRows : std::uint8_t { kAll, kSelected };

class PassTimer {
 public:
  /// Profiles of a pass's attention kernels, which each step writes anew.
  using AttentionSlots = std::array<std::uint32_t, 2>;

  /// Profiles are added to `program`. `split`: the model's. All outlive this.
  PassTimer(const ServerPlan& plan, const model::ModelSpec& model, const model::Split& split,
            program::Program& program, ServerMeetings meetings);

  /// Fault: as summed_iteration_work.
  [[nodiscard]] Result<model::ModelWork> work(const model::IterationSums& sums) const;
  /// Learns where attention is in the passes to come. `mixed`: of prompts and single tokens. Once,
  /// before what follows.
  void learn(const model::ModelWork& mixed);
  [[nodiscard]] AttentionSlots add_slots();
  /// Writes the operations of a pass from `op` on; returns what is behind them.
  program::Op* write(program::Op* op, const model::IterationSums& sums, LogitRows rows,
                     const AttentionSlots& slots);

 private:
  /// A kernel or an exchange at the present step.
  struct Timed {
    Duration duration{};  ///< of an exchange: after the transfer
    std::uint32_t profile = program::kNoIndex;
    std::uint32_t collective = program::kNoIndex;
  };
  /// Those of each layer kind.
  using Timings = std::vector<std::vector<Timed>>;

  [[nodiscard]] model::ModelWork known_work(const model::IterationSums& sums) const;
  [[nodiscard]] const Timings& body(const model::IterationSums& sums);
  [[nodiscard]] const std::vector<Timed>& head(std::uint32_t rows, LogitRows kind);
  [[nodiscard]] std::vector<Timed> time(const model::LayerWork& layer);
  [[nodiscard]] Timed time(const model::KernelWork& work);
  [[nodiscard]] Timed time(const model::Communication& what);
  void time_attention(const model::IterationSums& sums, const AttentionSlots& slots);
  std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch);

  const ServerPlan& plan_;
  const model::ModelSpec& model_;
  model::Split split_;
  program::Program& program_;
  ServerMeetings meetings_;
  KernelTimer timer_;
  ProfileTable profiles_;
  std::map<std::uint32_t, std::uint32_t> profile_of_channels_;  ///< of collectives
  std::vector<std::uint32_t> layers_;        ///< into kinds; the last is the head
  std::size_t before_attention_ = 0;         ///< operations of a block
  /// Times by tokens, and those of the group.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Timings> bodies_;
  std::map<std::pair<std::uint32_t, LogitRows>, std::vector<Timed>> heads_;
  std::vector<Timed> attention_;             ///< of the present step
};

}  // namespace bubblesim::synth
