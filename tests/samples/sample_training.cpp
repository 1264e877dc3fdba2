// A transformer's training on a pipeline of stages with data-parallel replicas: what each rank's
// host thread would issue, as PyTorch and DDP do it: every transfer waits for the compute stream
// and is waited for by it; gradients are reduced in buckets while the last backward still runs.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tests/samples/samples.hpp"
#include "tests/samples/timeline.hpp"
#include "traces/trace_origin.hpp"

namespace bubblesim::traces {
namespace {

/// One rank's part of the job.
class TrainingRank {
  // The model: one micro-batch of 4 sequences of 1024 tokens, in half precision.
  static constexpr std::uint64_t kTokens = 4096;
  static constexpr std::uint64_t kSequence = 1024;
  static constexpr std::uint64_t kHidden = 2048;
  static constexpr std::uint64_t kVocabulary = 8192;
  static constexpr std::uint64_t kHalf = 2;  // bytes of a half
  // Bytes between two layers.
  static constexpr std::uint64_t kActivation = kTokens * kHidden * kHalf;
  static constexpr std::uint64_t kLayerParameters = 12 * kHidden * kHidden;
  // Bytes kept for one layer's backward.
  static constexpr std::uint64_t kKeptPerLayer = 14 * kActivation;
  static constexpr std::uint64_t kReservedBytes = 24ULL << 30;
  static constexpr std::uint32_t kLayersPerBucket = 2;

  // Adam in mixed precision: 2 + 2 bytes of half weight and gradient, 12 of master and moments.
  static constexpr std::uint64_t kStateBytesPerParameter = 16;
  static constexpr std::uint32_t kOptimizerKernels = 4;

  static constexpr Duration kDataLoading = std::chrono::microseconds{350};
  static constexpr Duration kThinkPerKernel = std::chrono::nanoseconds{3500};
  static constexpr Duration kThinkPerPhase = std::chrono::microseconds{40};

 public:
  TrainingRank(const SampleOptions& options, std::uint32_t rank)
      : options_(options), replicas_(options.ranks / options.stages), rank_(rank),
        stage_(rank / replicas_), layers_(options.layers / options.stages),
        script_(rank, options.ranks, options.seed) {
    compute_ = script_.add_stream(7, 0);
    forward_in_ = script_.add_stream(16, -1);
    forward_out_ = script_.add_stream(20, -1);
    backward_in_ = script_.add_stream(24, -1);
    backward_out_ = script_.add_stream(28, -1);
    reduce_ = script_.add_stream(32, -1);
  }

  RankScript take() {
    for (std::uint32_t i = 0; i < options_.iterations; ++i) iteration(i);
    return std::move(script_);
  }

 private:
  [[nodiscard]] bool first() const { return stage_ == 0; }
  [[nodiscard]] bool last() const { return stage_ + 1 == options_.stages; }

  void kernel(const SampleKernel& what) {
    script_.think(kThinkPerKernel);
    script_.launch(compute_, what);
  }
  void elementwise(const std::string& what, std::uint64_t activations) {
    kernel(elementwise_kernel(what, activations * kActivation));
  }

  void forward_layer() {
    elementwise("layer_norm", 2);
    kernel(gemm_kernel("tn", kTokens, 3 * kHidden, kHidden));
    kernel(attention_kernel("forward", kTokens, kSequence, kHidden, 1.0));
    kernel(gemm_kernel("tn", kTokens, kHidden, kHidden));
    elementwise("add", 3);
    elementwise("layer_norm", 2);
    kernel(gemm_kernel("tn", kTokens, 4 * kHidden, kHidden));
    elementwise("gelu", 8);
    kernel(gemm_kernel("tn", kTokens, kHidden, 4 * kHidden));
    elementwise("add", 3);
  }
  void backward_layer() {
    kernel(gemm_kernel("nn", kTokens, 4 * kHidden, kHidden));
    kernel(gemm_kernel("nt", kHidden, 4 * kHidden, kTokens));
    elementwise("gelu_backward", 12);
    kernel(gemm_kernel("nn", kTokens, kHidden, 4 * kHidden));
    kernel(gemm_kernel("nt", 4 * kHidden, kHidden, kTokens));
    elementwise("layer_norm_backward", 4);
    kernel(gemm_kernel("nn", kTokens, kHidden, kHidden));
    kernel(gemm_kernel("nt", kHidden, kHidden, kTokens));
    kernel(attention_kernel("backward", kTokens, kSequence, kHidden, 2.5));
    kernel(gemm_kernel("nn", kTokens, kHidden, 3 * kHidden));
    kernel(gemm_kernel("nt", 3 * kHidden, kHidden, kTokens));
    elementwise("layer_norm_backward", 4);
  }
  void forward(std::uint32_t micro_batch) {
    script_.begin(MarkerKind::kMicroBatch, "forward micro-batch " + std::to_string(micro_batch),
                  micro_batch);
    if (first())
      elementwise("embedding", 2);
    else
      transfer(forward_in_, CollectiveKind::kRecv, rank_ - replicas_,
               "forward_" + std::to_string(rank_ - replicas_));
    for (std::uint32_t layer = 0; layer < layers_; ++layer) forward_layer();
    if (last()) {
      kernel(gemm_kernel("tn", kTokens, kVocabulary, kHidden));
      elementwise("cross_entropy", 8);
    } else {
      transfer(forward_out_, CollectiveKind::kSend, rank_ + replicas_,
               "forward_" + std::to_string(rank_));
    }
    note_memory(++kept_);
    script_.end();
  }
  void backward(std::uint32_t micro_batch) {
    script_.begin(MarkerKind::kMicroBatch, "backward micro-batch " + std::to_string(micro_batch),
                  micro_batch);
    if (last()) {
      kernel(gemm_kernel("nn", kTokens, kHidden, kVocabulary));
      kernel(gemm_kernel("nt", kVocabulary, kHidden, kTokens));
    } else {
      transfer(backward_in_, CollectiveKind::kRecv, rank_ + replicas_,
               "backward_" + std::to_string(rank_ + replicas_));
    }
    const bool reduces = replicas_ > 1 && micro_batch + 1 == options_.micro_batches;
    std::uint32_t in_bucket = 0;
    for (std::uint32_t layer = 0; layer < layers_; ++layer) {
      backward_layer();
      ++in_bucket;
      if (reduces && (in_bucket == kLayersPerBucket || layer + 1 == layers_))
        reduce_bucket(std::exchange(in_bucket, 0));
    }
    if (!first())
      transfer(backward_out_, CollectiveKind::kSend, rank_ - replicas_,
               "backward_" + std::to_string(rank_));
    note_memory(--kept_);
    script_.end();
  }
  void reduce_bucket(std::uint32_t layers) {
    const std::string group = "data_parallel_" + std::to_string(stage_);
    Collective what;
    what.kind = CollectiveKind::kAllReduce;
    what.bytes = layers * kLayerParameters * kHalf;
    what.group = script_.name(group);
    what.group_size = replicas_;
    for (std::uint32_t r = 0; r < replicas_; ++r) what.peers.push_back(stage_ * replicas_ + r);
    what.sequence = ++sequence_[group];
    what.sequence_recorded = true;
    // All members draw the same transfer time: the stream is named by the meeting, not the rank.
    RandomStream random(options_.seed, group + " " + std::to_string(what.sequence));
    script_.think(kThinkPerPhase);
    script_.order(compute_, reduce_);
    script_.collective(
        reduce_,
        {"ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", nccl_shape(),
         jitter(all_reduce_time(what.bytes, replicas_), kDeviceJitter, random)},
        what);
  }
  void optimizer() {
    script_.begin(MarkerKind::kPhase, "Optimizer.step#Adam.step", -1);
    if (replicas_ > 1) script_.order(reduce_, compute_);
    const std::uint64_t bytes = layers_ * kLayerParameters * kStateBytesPerParameter;
    kernel(elementwise_kernel("gradient_norm", layers_ * kLayerParameters * kHalf));
    for (std::uint32_t i = 0; i < kOptimizerKernels; ++i)
      kernel(elementwise_kernel("adam", bytes / kOptimizerKernels));
    script_.end();
  }
  /// 1F1B: as many forwards ahead as there are stages behind, then one of each in turn, then the
  /// backwards that are left.
  void iteration(std::uint32_t number) {
    script_.begin(MarkerKind::kIteration, "ProfilerStep#" + std::to_string(number), number);
    script_.think(kDataLoading);
    if (first()) script_.copy(compute_, CopyDirection::kHostToDevice, 8 * kTokens);
    const std::uint32_t ahead = std::min(options_.stages - stage_ - 1, options_.micro_batches);
    for (std::uint32_t i = 0; i < ahead; ++i) forward(i);
    for (std::uint32_t i = ahead; i < options_.micro_batches; ++i) {
      forward(i);
      backward(i - ahead);
    }
    for (std::uint32_t i = options_.micro_batches - ahead; i < options_.micro_batches; ++i)
      backward(i);
    optimizer();
    script_.copy(compute_, CopyDirection::kDeviceToHost, 4);
    script_.stream_sync(compute_);
    script_.end();
  }
  /// Issued like ProcessGroupNCCL's: behind the compute stream's work so far, which then waits for
  /// it only where the data is needed (receives).
  void transfer(std::uint32_t stream, CollectiveKind kind, std::uint32_t peer,
                const std::string& group) {
    const bool receives = kind == CollectiveKind::kRecv;
    Collective what;
    what.kind = kind;
    what.bytes = kActivation;
    what.group = script_.name(group);
    what.group_size = 2;
    what.peers = {std::min(rank_, peer), std::max(rank_, peer)};
    what.sequence = ++sequence_[group];
    what.sequence_recorded = true;
    script_.think(kThinkPerPhase);
    script_.order(compute_, stream);
    script_.collective(stream,
                       {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", nccl_shape(),
                        transfer_time(kActivation)},
                       what);
    if (receives) script_.order(stream, compute_);
  }
  void note_memory(std::uint32_t kept_micro_batches) {
    const std::uint64_t state = layers_ * kLayerParameters * kStateBytesPerParameter;
    script_.memory(state + kept_micro_batches * layers_ * kKeptPerLayer, kReservedBytes);
  }

  SampleOptions options_;
  std::uint32_t replicas_;
  std::uint32_t rank_;
  std::uint32_t stage_;
  std::uint32_t layers_;
  RankScript script_;
  std::uint32_t compute_ = 0, forward_in_ = 0, forward_out_ = 0, backward_in_ = 0;
  std::uint32_t backward_out_ = 0, reduce_ = 0;
  std::uint32_t kept_ = 0;  ///< micro-batches forwarded and not yet backwarded
  std::map<std::string, std::uint64_t> sequence_;
};

}  // namespace

JobTrace make_sample_training(const SampleOptions& options) {
  std::vector<RankScript> scripts;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank)
    scripts.push_back(TrainingRank(options, rank).take());
  JobTrace job = play(std::move(scripts), kOrigin);
  for (RankTrace& trace : job.ranks)
    trace.provenance = {"sample training, rank " + std::to_string(trace.rank),
                        std::string(kMadeFormat), "bubblesim", "generated; not a measurement"};
  return job;
}

}  // namespace bubblesim::traces
