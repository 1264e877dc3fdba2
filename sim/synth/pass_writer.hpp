// Writes passes of a model as an inference server launches them: kernels and exchanges between GPUs
// in order on one stream from one host thread, by single calls or as a CUDA graph; copies to and
// from the host. Exchanges are written without peers and take no time: the caller that runs the
// program on several GPUs joins them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/model/layer_work.hpp"
#include "sim/synth/inference_request.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/synth/timed_model.hpp"

namespace bubblesim::synth {

/// A copy between host and device takes kCopyLatency + bytes / kHostLink, rounded to the nearest
/// nanosecond. PCIe 4.0 x16 carries 31.5 GB/s by its specification; 25 GB/s of it is assumed to be
/// reached from pinned memory. No device file holds a host link.
inline constexpr double kHostLink = 25e9;      // bytes/s
inline constexpr Duration kCopyLatency{1500};  // ns, assumed
[[nodiscard]] Duration copy_time(double bytes);

inline constexpr double kTokenBytes = 8.0;  ///< PyTorch's token numbers are 64-bit

class PassWriter {
 public:
  /// `request` outlives it: its GPU, efficiency and software are used.
  explicit PassWriter(const InferenceRequest& request);

  [[nodiscard]] ProgramWriter& writer() { return writer_; }

  /// All kernels of a forward pass. Fault: more kernels than a program may hold.
  [[nodiscard]] Result<void> pass(const model::ModelWork& work, DecodeMode mode);
  /// A pass with the copy of its result to the host behind it, within the graph if it is one; the
  /// host waits for it.
  [[nodiscard]] Result<void> pass_and_result(const model::ModelWork& work, DecodeMode mode,
                                             double result_bytes);
  void copy_to_device(double bytes);
  /// A copy of nothing yet on a stream of its own; returns its operation.
  [[nodiscard]] std::uint32_t copy_beside();

  [[nodiscard]] double flops() const { return flops_; }
  [[nodiscard]] std::uint64_t kernels() const { return kernels_; }

 private:
  [[nodiscard]] Result<void> add_drafts(const model::ModelWork& work);
  [[nodiscard]] OpDraft draft_of(const model::KernelWork& work);
  [[nodiscard]] OpDraft draft_of(const model::Communication& what);
  [[nodiscard]] OpDraft copy_draft(std::string_view name, double bytes);
  std::uint32_t emit(DecodeMode mode);

  const InferenceRequest& request_;
  KernelTimer timer_;
  ProgramWriter writer_;
  CallCost call_;
  ProfileTable profiles_;
  std::vector<OpDraft> drafts_;  ///< of the pass that is being written
  double flops_ = 0;
  std::uint64_t kernels_ = 0;
};

}  // namespace bubblesim::synth
