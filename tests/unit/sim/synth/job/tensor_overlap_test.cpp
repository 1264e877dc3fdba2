// Exchanges of tensor ranks beside compute (TokenWeave, arXiv 2505.11329): iterations by a walk
// over two resources, the compute stream and the exchanges' stream.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "sim/network/topology.hpp"
#include "sim/synth/plan_file.hpp"
#include "tests/unit/sim/synth/job/tiny_job.hpp"

namespace bubblesim::synth {
namespace {

using testing::HasSubstr;

/// 6 blocks of a Llama-like transformer on 4 tensor ranks of a node whose ports have `rate`.
JobRequest tensor_job(double rate) {
  JobRequest request = tiny_job();
  model::TransformerSpec spec = llama_like(6, 2048);
  spec.max_sequence = 1024;
  spec.mask = model::AttentionMask::kCausal;
  spec.head = model::Head::kLanguageModel;
  request.model = {"small llama", spec};
  request.plan.tensor = 4;
  request.plan.micro_batch = 4;
  request.plan.attention = model::AttentionKernels::kFlash;
  request.cluster = plain_cluster(rate);
  set_micro_batches(request, 1);
  return request;
}

JobRequest overlapped(JobRequest request, TensorOverlapPlan overlap = {}) {
  request.plan.tensor_overlap = overlap;
  return request;
}

/// A walk over one pass: kernels one after another, exchanges one after another, each exchange
/// after its own part's kernels, a part's kernels after its exchange. The second road to the time.
class TwoResources {
 public:
  TwoResources(const ParallelPlan& plan) : plan_(plan), topology_(plan.request.cluster) {}

  void kernel(std::size_t part, const TimedItem& item) {
    compute_ = std::max(compute_, ready_[part]) +
               to_seconds(plan_.model.kernels[std::get<std::uint32_t>(item)].duration);
    // An exchange that runs beside the next item holds the one after it.
    ready_[part] = std::exchange(later_[part], 0);
  }

  void exchange(std::size_t part, const TimedItem& item) {
    const auto& what = std::get<model::Communication>(item);
    const auto transfer = topology_.plan(network::CollectivePattern::kAllReduce,
                                         Bytes{static_cast<std::uint64_t>(what.bytes)},
                                         network::strided_group(0, 4));
    const double begin = std::max({compute_, exchanges_, ready_[part], later_[part]});
    exchanges_ = begin + to_seconds(topology_.solo_time(transfer));
    double& held = what.overlaps_next ? later_[part] : ready_[part];
    held = std::max(held, exchanges_);
  }

  /// Items of all parts in turns, up to an exchange each.
  void turns(std::vector<std::span<const TimedItem>> parts) {
    const auto left = [](const auto& part) { return !part.empty(); };
    while (std::any_of(parts.begin(), parts.end(), left)) {
      for (std::size_t p = 0; p < parts.size(); ++p) turn(p, parts[p]);
    }
  }

  void join() {
    ready_.fill(*std::max_element(ready_.begin(), ready_.end()));
    later_.fill(*std::max_element(later_.begin(), later_.end()));
  }

  [[nodiscard]] double end() const { return std::max(compute_, exchanges_); }

 private:
  void turn(std::size_t part, std::span<const TimedItem>& items) {
    bool met = false;
    while (!items.empty()) {
      const bool is_exchange = std::holds_alternative<model::Communication>(items.front());
      if (met && !is_exchange) return;
      met = met || is_exchange;
      is_exchange ? exchange(part, items.front()) : kernel(part, items.front());
      items = items.subspan(1);
    }
  }

  const ParallelPlan& plan_;
  network::Topology topology_;
  double compute_ = 0;
  double exchanges_ = 0;
  std::array<double, 2> ready_{};
  std::array<double, 2> later_{};
};

double walked_seconds(const ParallelPlan& plan, const SynthesisedJob& job) {
  TwoResources walk(plan);
  const auto pass = [&](std::uint32_t layer, std::vector<TimedItem> TimedLayer::* items) {
    std::vector<std::span<const TimedItem>> parts;
    std::vector<std::uint32_t> offsets = plan.part_kinds;
    if (offsets.empty()) offsets = {0};
    for (const std::uint32_t offset : offsets) {
      parts.emplace_back(plan.model.layers[offset + plan.kind_of(layer)].*items);
    }
    walk.turns(parts);
  };
  const auto layers = static_cast<std::uint32_t>(plan.model.work.layers.size());
  for (std::uint32_t layer = 0; layer < layers; ++layer) pass(layer, &TimedLayer::forward);
  walk.join();
  for (std::uint32_t layer = layers; layer-- > 0;) pass(layer, &TimedLayer::backward);
  return walk.end() + optimizer_seconds(job.program.ranks[0]);
}

// Ports from so fast that exchanges hide to so slow that they are all there is.
TEST(TensorOverlap, TakesWhatAWalkOverComputeAndExchangesSays) {
  for (const double rate : {1e12, 1e11, 1e10, 1e9}) {
    for (const JobRequest& request : {tensor_job(rate), overlapped(tensor_job(rate)),
                                      overlapped(tensor_job(rate), {.first = 1})}) {
      const ParallelPlan plan = plan_of(request);
      const SynthesisedJob job = synthesise(plan);
      EXPECT_NEAR(seconds(plan, job) / walked_seconds(plan, job), 1, 2e-3) << rate;
    }
  }
}

// One rank's exchanges, by closed form: 2 (n - 1) / n of the array over its port.
TEST(TensorOverlap, ExchangesCarryTheSameBytesInTwiceAsMany) {
  const SynthesisedJob whole = synthesise(plan_of(tensor_job(1e11)));
  const SynthesisedJob parts = synthesise(plan_of(overlapped(tensor_job(1e11))));
  EXPECT_EQ(parts.program.collectives.size(), 2 * whole.program.collectives.size());
  const auto kind = traces::CollectiveKind::kAllReduce;
  EXPECT_EQ(bytes_of_kind(parts, kind), bytes_of_kind(whole, kind));
}

JobRequest fused_job(std::uint32_t blocks, bool fused) {
  JobRequest request = overlapped(tensor_job(1e11), {.blocks = blocks, .fused_norm = fused});
  request.cluster.collectives.node_channels = 24;
  request.cluster.collectives.block_bandwidth = BytesPerSecond{1e10};
  request.cluster.collectives.block_local_bandwidth = BytesPerSecond{5e9};
  return request;
}

// A forward pass has 13 norms and 12 residual sums, for each part; the first norm has no exchange
// of a block before it. The last block's exchange has the head's norm.
TEST(TensorOverlap, FusedNormsAreNoKernels) {
  const auto count = [](const JobRequest& request, std::string_view name) {
    const SynthesisedJob job = synthesise(plan_of(request));
    const program::Program& rank = job.program.ranks[0];
    return std::count_if(rank.ops.begin(), rank.ops.end(), [&](const program::Op& op) {
      return rank.names[op.name] == name;
    });
  };
  EXPECT_EQ(count(fused_job(8, false), "rmsnorm"), 26);
  EXPECT_EQ(count(fused_job(8, true), "rmsnorm"), 2);
  EXPECT_EQ(count(fused_job(8, false), "residual add"), 24);
  EXPECT_EQ(count(fused_job(8, true), "residual add"), 0);
}

// 2 samples x 1,024 tokens x 2,048 columns of 2 bytes are 8.39 MB, of which a ring of 4 carries
// 1.5 times. Two blocks move 20 GB/s. Fused: 3 and 2 passes over the array, a quarter on each rank.
TEST(TensorOverlap, BlocksBoundAnExchangeAndWhatIsFusedIntoIt) {
  const auto longest = [](const JobRequest& request) {
    const SynthesisedJob job = synthesise(plan_of(request));
    const network::Topology topology(request.cluster);
    double most = 0;
    for (const network::Transfer& transfer : job.program.transfers) {
      most = std::max(most, to_seconds(topology.solo_time(transfer)));
    }
    return most;
  };
  const double array = 2.0 * 1024 * 2048 * 2;
  EXPECT_NEAR(longest(fused_job(0, false)), 1.5 * array / 1e11, 1e-8);  // the port's
  EXPECT_NEAR(longest(fused_job(2, false)), 1.5 * array / 2e10, 1e-8);
  EXPECT_NEAR(longest(fused_job(2, true)), 1.5 * array / 2e10 + 5 * array / 4 / 1e10, 1e-8);
}

// NCCL opens so many channels inside a node. Further SMs change nothing, and are counted.
TEST(TensorOverlap, BlocksBeyondTheChannelsChangeNothing) {
  const auto unused = [](const JobRequest& request) {
    return synthesise(plan_of(request)).program.counters.count("synth_overlap_sms_unused");
  };
  EXPECT_EQ(unused(fused_job(24, true)), 0U);
  EXPECT_EQ(unused(fused_job(32, true)), 8U);
  EXPECT_EQ(seconds(fused_job(32, true)), seconds(fused_job(24, true)));
}

TEST(TensorOverlap, ASchedulePutsBothPartsThroughEachStage) {
  JobRequest request = overlapped(tensor_job(1e11));
  request.plan.pipeline = 2;
  set_micro_batches(request, 4);
  JobRequest unfolded = request;
  unfolded.plan.folding = Folding::kNothing;
  EXPECT_NEAR(seconds(request) / seconds(unfolded), 1, 1e-3);
}

TEST(TensorOverlap, WhatMakesNoSenseIsRefused) {
  JobRequest alone = overlapped(tensor_job(1e11));
  alone.plan.tensor = 1;
  EXPECT_THAT(fault_of(alone), HasSubstr("expected \"tensor\" of at least 2"));
  JobRequest one = overlapped(tensor_job(1e11));
  one.plan.micro_batch = 1;
  EXPECT_THAT(fault_of(one), HasSubstr("expected \"micro_batch\" of 2 or more"));
  EXPECT_THAT(fault_of(overlapped(tensor_job(1e11), {.first = 4})),
              HasSubstr("/tensor_overlap/first: found 4 samples of 4; expected 1 to 3"));
  EXPECT_THAT(fault_of(overlapped(tensor_job(1e11), {.blocks = 8})),
              HasSubstr("/tensor_overlap/sms: cluster plain does not say"));
  JobRequest split = fused_job(8, true);
  split.plan.sequence_parallel = true;
  EXPECT_THAT(fault_of(split), HasSubstr("norms are split already"));
  JobRequest wide = fused_job(20001, true);
  EXPECT_THAT(fault_of(wide),
              HasSubstr("/tensor_overlap/sms: found 20001; expected at most 20000, the SMs of"));
}

TEST(TensorOverlap, KeysAreReadAndMayBeLeftOut) {
  const auto with = parse_plan(R"({"global_batch": 2, "tensor": 2, "micro_batch": 2,
      "tensor_overlap": {"first": 1, "sms": 8, "fused_norm": true}})", "p");
  ASSERT_TRUE(with.has_value() && with->tensor_overlap.has_value());
  EXPECT_EQ(with->tensor_overlap->first, 1U);
  EXPECT_EQ(with->tensor_overlap->blocks, 8U);
  EXPECT_TRUE(with->tensor_overlap->fused_norm);
  const auto without = parse_plan(R"({"global_batch": 1})", "p");
  ASSERT_TRUE(without.has_value());
  EXPECT_FALSE(without->tensor_overlap.has_value());
}

}  // namespace
}  // namespace bubblesim::synth
