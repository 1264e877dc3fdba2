// The steps of a language-model engine as passes of a program, launched as inference_program.hpp
// says.
//
// A step has no bucket. The program has a thread for each kind of step (prompts, decode, both) and
// each way to launch it (graphs, none), with the kernels of such a step; before a pass starts,
// each kernel gets its time and launch in the present step: matrix products by its tokens, the
// head by its sequences, attention by the sums of its queries, keys and pairs. Timed products are
// kept by their number of tokens.
//
// A server over several GPUs has a program on each, all with the same steps: kernels of a GPU's
// part of each layer, and exchanges between them, each of which starts when the last GPU has
// reached it. A step's host time includes the scheduler's messages to the other GPUs' processes. If
// data-parallel members share the experts of a mixture (ServerPlan::members), they step together,
// each with its own step, and exchange tokens in every mixture.
//
// A draft model runs before the model that checks its tokens: over a step's prompts once, and over
// its decoding sequences once for each drafted token, one token of each at a time (vLLM's proposer,
// vllm/v1/spec_decode, makes as many passes over the whole batch, too). The draft model's cache has
// all accepted tokens but the last, which is its first input; if all were accepted it has one more
// input, which is left out here.
//
// Rounded: steps launched as CUDA graphs (serving::StepGraphs) are padded to the sizes that vLLM
// captures, except for attention and logits. Members' steps are launched alike
// (serving::launch_alike); passes of the draft model are pieces (vLLM 0.19). Simplified: a prompt
// of as many tokens as a round of drafts checks is in pieces (one graph in vLLM). Swapped blocks
// cost their bytes over the host link, one direction after the other, and kCopyLatency for
// each copy (swap_group). They are copied before the step with its input, or beside its kernels on
// a separate stream, for which the step waits at its end (swap_timing).
//
// If the plan has measured times of steps (ServerPlan::kernels), a step's kernels and the gaps
// between them together take that time, divided in proportion to the kernel model's times.
//
// Policies know a kernel by name and profile: a product of another number of tokens is another
// kernel; attention is one for each kind of step.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/base/time.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/network/topology.hpp"
#include "sim/program/program.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::synth {

// The meetings of a server's GPUs: a collective for each kind and size of exchange in its steps,
// over the same links as training's collectives.
//
// sim/network gives an exchange's cost on the server's GPUs; model::server_reduce says which
// all-reduces are vLLM's own kernels. Its kernel holds SMs on each of them
// from its own start on, as training's does. Sizes are never forgotten: there are as many as counts
// of tokens, of one member or of all together. Single-threaded.

/// A stage of vLLM's own all-reduce besides its bytes: as measured on H100s
/// (notebooks/lab/stages.py), assumed for other GPUs.
inline constexpr Duration kReduceStage = std::chrono::microseconds{6};

class ServerExchanges {
 public:
  struct Meeting {
    std::uint32_t collective = 0;  ///< in the rendezvous
    std::uint32_t channels = 1;    ///< blocks of the collective's kernel on each GPU
  };

  /// `group`: GPUs that run steps together. Topology and rendezvous outlive this; the rendezvous
  /// was made with the topology's links.
  ServerExchanges(const network::Topology& topology, network::Group group,
                  network::Rendezvous& rendezvous)
      : topology_(topology), group_(std::move(group)), rendezvous_(rendezvous) {}

  /// The meeting of all GPUs for this exchange: the same one for every step of every GPU.
  [[nodiscard]] Meeting meeting(const model::Communication& what);

 private:
  [[nodiscard]] network::Transfer transfer_of(network::CollectivePattern kind,
                                              std::uint64_t bytes) const;

  struct Planned {
    network::Transfer transfer;
    Meeting meeting;
  };

  const network::Topology& topology_;
  network::Group group_;
  network::Rendezvous& rendezvous_;
  std::map<std::pair<network::CollectivePattern, std::uint64_t>, Planned> planned_;  ///< by pattern
                                                                                     ///< and bytes
};

/// The meetings of a GPU's exchanges; null: no peers, and no time.
struct ServerMeetings {
  ServerExchanges* tensor = nullptr;   ///< of its member's GPUs, which share each layer
  ServerExchanges* experts = nullptr;  ///< of all members' GPUs, which share the experts

  [[nodiscard]] ServerExchanges* exchanges_of(model::ParallelAxis axis) const {
    return axis == model::ParallelAxis::kExpert ? experts : tensor;
  }
};

// The operations of a model's pass at any step of a server, timed: kernels, and exchanges between
// the server's GPUs. Products are timed once for each number of tokens, heads for each number of
// rows; attention in every step.

/// The tokens of a pass that have logits.
enum class LogitRows : std::uint8_t { kAll, kSelected };

class PassTimer {
 public:
  /// Profiles of a pass's attention kernels, which each step overwrites.
  using AttentionSlots = std::array<std::uint32_t, 2>;

  /// Adds profiles to `program`. `split`: the model's. All arguments outlive this.
  PassTimer(const ServerPlan& plan, const model::ModelSpec& model, const model::Split& split,
            program::Program& program, ServerMeetings meetings);

  /// Fault: as summed_iteration_work.
  [[nodiscard]] Result<model::ModelWork> work(const model::IterationSums& sums) const;
  /// Learns the place of attention in later passes. `mixed`: of prompts and single tokens. Called
  /// before the functions below.
  void learn(const model::ModelWork& mixed);
  [[nodiscard]] AttentionSlots add_slots();
  /// Writes the operations of a pass from `op` on; returns the end.
  program::Op* write(program::Op* op, const model::IterationSums& sums, LogitRows rows,
                     const AttentionSlots& slots);

 private:
  /// A kernel or an exchange in the present step.
  struct Timed {
    Duration duration{};  ///< of an exchange: of the fixed part after its transfer
    std::uint32_t profile = program::kNoIndex;
    std::uint32_t collective = program::kNoIndex;
  };
  /// Timed items of each layer kind.
  using Timings = std::vector<std::vector<Timed>>;

  [[nodiscard]] model::ModelWork known_work(const model::IterationSums& sums) const;
  [[nodiscard]] const Timings& body(const model::IterationSums& sums);
  [[nodiscard]] const std::vector<Timed>& head(std::uint32_t rows, LogitRows kind);
  [[nodiscard]] std::vector<Timed> time(const model::LayerWork& layer);
  [[nodiscard]] Timed time(const model::KernelWork& work);
  [[nodiscard]] Timed time(const model::Communication& what);
  void time_attention(const model::IterationSums& sums, const AttentionSlots& slots);

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
  /// Times by own tokens and the group's tokens.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Timings> bodies_;
  std::map<std::pair<std::uint32_t, LogitRows>, std::vector<Timed>> heads_;
  std::vector<Timed> attention_;             ///< of the present step
};

class PassWriter;

/// The sums of a step. A prompt's single token is decoded like any other.
[[nodiscard]] model::IterationSums sums_of(const serving::ScheduledStep& step,
                                           const serving::StepShape& shape);

class ServerProgram final : public workload::StepProgram {
 public:
  /// `meetings`: of the server's GPUs; they outlive this. Fault: as summed_iteration_work. A step
  /// has fewer than 2^16 kernels.
  [[nodiscard]] static Result<std::unique_ptr<ServerProgram>> make(Shared<ServerPlan> plan,
                                                                   ServerMeetings meetings = {});

  [[nodiscard]] const program::Program& program() const override { return program_; }
  [[nodiscard]] serving::StepShape shape_of(const serving::ScheduledStep& step) const override;
  [[nodiscard]] std::uint32_t set(const serving::ScheduledStep& step,
                                  const serving::StepShape& shape, bool queued) override;

 private:
  enum Kind : std::uint8_t { kPrompts, kDecode, kMixed };

  struct Launch {
    Kind kind = kPrompts;
    serving::StepGraphs graphs = serving::StepGraphs::kNone;
    friend bool operator==(const Launch&, const Launch&) = default;
  };

  /// The places of a thread's operations, and the profiles of its passes' attention: of drafts, if
  /// there are any, and of the model itself last.
  struct Template {
    Launch launch{};
    std::uint32_t first = 0;   ///< of its kernels, into the program's ops
    std::uint32_t input = 0;   ///< the copy of tokens to the device
    std::uint32_t swap = 0;    ///< the copy of swapped blocks beside it, if the plan swaps so
    std::uint32_t result = 0;  ///< the copy of tokens to the host
    std::vector<PassTimer::AttentionSlots> attention{};
  };

  ServerProgram(Shared<ServerPlan> plan, ServerMeetings meetings);
  [[nodiscard]] Result<void> write_threads();
  [[nodiscard]] std::vector<Launch> launches_of_steps() const;
  [[nodiscard]] Result<void> write_thread(PassWriter& passes, Launch launch);
  [[nodiscard]] Template template_of(const program::ThreadProgram& thread, Launch launch);
  /// Of the draft model's pass in a step with `graphs`: later passes have no prompts.
  [[nodiscard]] serving::StepGraphs draft_graphs(serving::StepGraphs graphs,
                                                 std::uint32_t draft) const;
  [[nodiscard]] std::uint32_t drafts_of(Kind kind) const;
  [[nodiscard]] static Kind kind_of(const model::IterationSums& sums);
  [[nodiscard]] model::IterationSums draft_sums(const serving::ScheduledStep& step,
                                                serving::StepGraphs graphs,
                                                std::uint32_t draft) const;
  [[nodiscard]] bool swaps_beside() const;
  [[nodiscard]] Duration swap_time(const serving::ScheduledStep& step) const;
  /// Scales the kernels from `first` to before `last`, and the gaps before them, to last
  /// `together`.
  static void stretch(program::Op* first, program::Op* last, Duration together);

  Shared<ServerPlan> plan_;
  program::Program program_;
  PassTimer passes_;
  std::optional<PassTimer> drafts_;  ///< nothing: no drafts, or drafts without kernels
  std::unique_ptr<StepKernels> kernels_;  ///< null: the kernel model's
  step_cost::CapturedGraphs captured_;
  std::vector<Template> threads_;         ///< in the program's order
};

}  // namespace bubblesim::synth
