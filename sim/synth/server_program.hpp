// The steps of a language-model engine as passes of a program, launched as inference_program.hpp
// says.
//
// A step has no bucket. The program has a thread for each kind of step (prompts, decode, both),
// whose kernels are those of a step of that kind; before a pass starts, each gets the time and the
// launch of the step at hand: matrix products by its tokens, the head by its sequences, attention
// by the sums of its queries, keys and pairs. Timed products are kept by their number of tokens.
//
// What is rounded: decode steps launched as a CUDA graph are padded to the sizes that vLLM
// captures, but for attention and logits. What is simplified: prompts and mixed steps are launched
// kernel by kernel (vLLM's piecewise graphs take fewer launches). Swapped blocks take their bytes
// over the host link, in both directions one after the other, and kCopyLatency for each copy
// (swap_group): before the step with its input, or beside its kernels on a stream of their own,
// for which the step waits at its end (swap_timing).
//
// Policies know a kernel by name and profile: a product of another number of tokens is another
// kernel; attention is one for each kind of step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/shared.hpp"
#include "sim/model/inference_work.hpp"
#include "sim/synth/profile_table.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::synth {

/// The tokens that a graph of a decode step of `sequences` computes: 1, 2, 4, then every 8 up to
/// 256, then every 16 up to 512 (vLLM 0.19, `cudagraph_capture_sizes`); beyond that, as many.
[[nodiscard]] std::uint32_t graph_tokens(std::uint32_t sequences);

/// The sums of a step. `padded`: tokens that the matrix products see.
[[nodiscard]] model::IterationSums sums_of(const serving::Step& step, std::uint32_t padded);

class ServerProgram final : public workload::StepProgram {
 public:
  /// Fault: as summed_iteration_work. Fewer than 2^16 kernels a step.
  [[nodiscard]] static Result<std::unique_ptr<ServerProgram>> make(Shared<ServerPlan> plan);

  [[nodiscard]] const program::Program& program() const override { return program_; }
  [[nodiscard]] std::uint32_t set(const serving::Step& step, bool queued) override;

 private:
  enum Kind : std::uint8_t { kPrompts, kDecode, kMixed };
  static constexpr std::size_t kKinds = 3;

  /// A kernel at the present step.
  struct Timed {
    Duration duration{};
    std::uint32_t profile = program::kNoIndex;
  };
  /// The kernels of each layer kind.
  using Timings = std::vector<std::vector<Timed>>;

  /// Where a thread's operations are.
  struct Template {
    std::uint32_t first = 0;        ///< of its kernels, into the program's ops
    std::uint32_t input = 0;        ///< the copy of tokens to the device
    std::uint32_t swap = 0;         ///< the copy of swapped blocks beside it, if the plan has it
    std::uint32_t result = 0;       ///< the copy of tokens to the host
    std::array<std::uint32_t, 2> attention{};  ///< profiles, which each step writes anew
  };

  explicit ServerProgram(Shared<ServerPlan> plan);
  [[nodiscard]] Result<void> write_threads();
  [[nodiscard]] Template template_of(const program::ThreadProgram& thread);
  [[nodiscard]] const Timings& body(std::uint32_t tokens);
  [[nodiscard]] const std::vector<Timed>& head(std::uint32_t rows, Kind kind);
  [[nodiscard]] Timed time(const model::KernelWork& work);
  void time_attention(const Template& thread, const model::IterationSums& sums);
  void write(const Template& thread, const Timings& body, const std::vector<Timed>& head);
  [[nodiscard]] bool swaps_beside() const;
  [[nodiscard]] Duration swap_time(const serving::Step& step) const;
  std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch);

  Shared<ServerPlan> plan_;
  KernelTimer timer_;
  program::Program program_;
  ProfileTable profiles_;
  std::array<Template, kKinds> threads_;
  std::vector<std::uint32_t> layers_;        ///< of all threads, into kinds; the last is the head
  std::size_t before_attention_ = 0;         ///< kernels of a block
  std::map<std::uint32_t, Timings> bodies_;  ///< by tokens
  std::map<std::pair<std::uint32_t, Kind>, std::vector<Timed>> heads_;
  std::vector<Timed> attention_;             ///< of the present step
};

}  // namespace bubblesim::synth
