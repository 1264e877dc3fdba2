// One batch of inference requests as a program, for a filler or as a trace.
//
// One host thread, one stream. The request is copied to the device, kernels are launched at the
// software's forward costs (forward_gap, launch_call), the result is copied back and the host waits
// for it. Generation: the prompts' pass, then decode steps; after each step the host waits for the
// tokens, since it decides whether to go on. Each kernel's time is that of its shape at that step:
// the cache grows by a token a step. All sequences of a batch are equal.
//
// Speculation: rounds of drafting and checking (model::speculation_work). A round yields e =
// model::expected_accepted tokens on average; after r rounds there are floor(r * e) tokens
// (fractions are carried, without random draws), besides the prompt's one. All sequences of a batch
// advance equally, which favours large batches, whose slowest sequence would end later. The draft
// model reads the prompt, too; a last accepted token that is not yet in its cache is neglected.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/program/program.hpp"
#include "sim/serving/step.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/synth/timed_model.hpp"
#include "traces/trace.hpp"

namespace bubblesim::synth {

struct InferenceProgram {
  program::Program program;   ///< one iteration in each pass: the batch
  InstanceMemory memory;
  std::uint64_t steps = 1;     ///< times that the host waited, once for each pass of the (large)
                               ///< model
  std::uint64_t kernels = 0;   ///< in a pass of the program
  double flops = 0;
};

/// Faults: a batch of 0, no prompt or output tokens, sequences too long for the model, a generating
/// model that is not a decoder, too little memory on the GPU.
[[nodiscard]] Result<InferenceProgram> inference_program(const InferenceRequest& request);

/// The trace of one rank that serves `passes` batches alone, one after another, each a marked
/// iteration. Memory: that of the instance. Fault: as inference_program; passes of 0.
[[nodiscard]] Result<traces::JobTrace> inference_trace(const InferenceRequest& request,
                                                       std::uint32_t passes = 1);

// Writes passes of a model as an inference server launches them: kernels and exchanges between GPUs
// in order on one stream from one host thread, by single calls or as CUDA graphs; copies to and
// from the host. Exchanges are written without peers and take no time; a caller with several GPUs
// joins them.

/// A copy between host and device takes kCopyLatency + bytes / kHostLink, rounded to the nearest
/// nanosecond. PCIe 4.0 x16 specifies 31.5 GB/s; copies from pinned memory are assumed to reach 25
/// GB/s. Device files' host links are not used.
inline constexpr double kHostLink = 25e9;      // bytes/s
inline constexpr Duration kCopyLatency{1500};  // ns, assumed
[[nodiscard]] Duration copy_time(double bytes);

inline constexpr double kTokenBytes = 8.0;  ///< PyTorch's token numbers are 64-bit

class PassWriter {
 public:
  /// `request` outlives it, with its GPU, efficiency and software.
  explicit PassWriter(const InferenceRequest& request);

  [[nodiscard]] ProgramWriter& writer() { return writer_; }

  /// All kernels of a forward pass. Fault: more kernels than a program may hold.
  [[nodiscard]] Result<void> pass(const model::ModelWork& work, serving::StepGraphs graphs);
  /// A pass, and the copy of its result to the host, within its last graph if there is one; the
  /// host waits for the copy.
  [[nodiscard]] Result<void> pass_and_result(const model::ModelWork& work,
                                             serving::StepGraphs graphs, double result_bytes);
  void copy_to_device(double bytes);
  /// Adds a copy of 0 bytes, whose size is set later, on a stream of its own; returns its
  /// operation.
  [[nodiscard]] std::uint32_t copy_beside();

  [[nodiscard]] double flops() const { return flops_; }
  [[nodiscard]] std::uint64_t kernels() const { return kernels_; }

 private:
  [[nodiscard]] Result<void> add_drafts(const model::ModelWork& work);
  [[nodiscard]] OpDraft draft_of(const model::KernelWork& work);
  [[nodiscard]] OpDraft draft_of(const model::Communication& what);
  [[nodiscard]] OpDraft copy_draft(std::string_view name, double bytes);
  std::uint32_t emit(serving::StepGraphs graphs);

  const InferenceRequest& request_;
  KernelTimer timer_;
  ProgramWriter writer_;
  CallCost call_;
  ProfileTable profiles_;
  std::vector<OpDraft> drafts_;  ///< of the pass under construction
  std::vector<std::size_t> attentions_;  ///< places of attention's kernels in it
  double flops_ = 0;
  std::uint64_t kernels_ = 0;
};

}  // namespace bubblesim::synth
