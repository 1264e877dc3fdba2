// An encoder's inference, one batch after the other: copy in, a layer's short kernels twelve times
// over, copy out, wait. The host stays ahead of the device but for the start of each pass.
#include <chrono>
#include <string>
#include <utility>

#include "tests/samples/samples.hpp"
#include "tests/samples/timeline.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

class Service {
  // One batch of 8 sequences of 256 tokens, in half precision.
  static constexpr std::uint64_t kTokens = 2048;
  static constexpr std::uint64_t kSequence = 256;
  static constexpr std::uint64_t kHidden = 768;
  static constexpr std::uint64_t kActivation = kTokens * kHidden * 2;  // bytes between two layers
  static constexpr std::uint64_t kWeightBytes = 220ULL << 20;
  static constexpr std::uint64_t kReservedBytes = 1ULL << 30;
  static constexpr std::uint64_t kAnswerBytes = 8 * 1000 * 4;

  static constexpr Duration kThinkPerPass = std::chrono::microseconds{60};
  static constexpr Duration kThinkPerKernel = std::chrono::nanoseconds{3000};

 public:
  explicit Service(const SampleServiceOptions& options)
      : options_(options), script_(0, 1, options.seed), stream_(script_.add_stream(7, 0)) {}

  RankScript take() {
    script_.memory(kWeightBytes, kReservedBytes);
    for (std::uint32_t i = 0; i < options_.passes; ++i) pass(i);
    return std::move(script_);
  }

 private:
  void kernel(const SampleKernel& what) {
    script_.think(kThinkPerKernel);
    script_.launch(stream_, what);
  }
  void layer() {
    kernel(gemm_kernel("tn", kTokens, 3 * kHidden, kHidden));
    kernel(attention_kernel("forward", kTokens, kSequence, kHidden, 2.0));
    kernel(gemm_kernel("tn", kTokens, kHidden, kHidden));
    kernel(elementwise_kernel("add", 3 * kActivation));
    kernel(elementwise_kernel("layer_norm", 2 * kActivation));
    kernel(gemm_kernel("tn", kTokens, 4 * kHidden, kHidden));
    kernel(elementwise_kernel("gelu", 8 * kActivation));
    kernel(gemm_kernel("tn", kTokens, kHidden, 4 * kHidden));
    kernel(elementwise_kernel("add", 3 * kActivation));
    kernel(elementwise_kernel("layer_norm", 2 * kActivation));
  }
  void pass(std::uint32_t number) {
    script_.begin(MarkerKind::kIteration, "ProfilerStep#" + std::to_string(number), number);
    script_.think(kThinkPerPass);
    script_.copy(stream_, CopyDirection::kHostToDevice, kActivation);
    script_.memory(kWeightBytes + 9 * kActivation, kReservedBytes);
    for (std::uint32_t i = 0; i < options_.layers; ++i) layer();
    script_.copy(stream_, CopyDirection::kDeviceToHost, kAnswerBytes);
    script_.stream_sync(stream_);
    script_.memory(kWeightBytes, kReservedBytes);
    script_.end();
  }

  SampleServiceOptions options_;
  RankScript script_;
  std::uint32_t stream_;
};

}  // namespace

JobTrace make_sample_inference(const SampleServiceOptions& options) {
  std::vector<RankScript> scripts;
  scripts.push_back(Service(options).take());
  JobTrace job = play(std::move(scripts), kOrigin);
  job.ranks.front().provenance = {"sample inference", std::string(kMadeFormat), "bubblesim",
                                  "generated; not a measurement"};
  return job;
}

}  // namespace bubblesim::traces
