// A server over several GPUs, of one member or more: its kernels are those of the split model, its
// exchanges the network's, and links that training loads too are shared.
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "sim/step_cost/model_times.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/workload/engine_service.hpp"
#include "sim/workload/machine.hpp"
#include "tests/fakes/lone_cost.hpp"
#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using std::chrono::microseconds, std::chrono::milliseconds;

constexpr std::uint32_t kGpus = 2;
constexpr double kPort = 100e9;  // bytes/s
constexpr Duration kHop = kReduceStage;

/// GPUs on one switch whose rings take a hop a step and their bytes, nothing else: the form of
/// step_cost::exchange_us.
network::Topology switched(std::uint32_t gpus = kGpus) {
  hardware::ClusterSpec spec;
  spec.name = "switched";
  spec.gpus_per_node = gpus;
  spec.node.bandwidth = {kPort};
  spec.collectives.ring_hop = {kHop, kHop, kHop};
  spec.collectives.tree_hop = {kHop, kHop, kHop};
  return network::Topology(spec);
}

/// Hosts cost nothing, and GPUs wait for nothing between kernels.
ServerPlan plan_of(const std::string& model, std::uint32_t tensor, std::uint32_t members,
                   DecodeMode decode = DecodeMode::kGraph) {
  InferenceRequest request = generation(1, 1, decode);
  request.model = must(model::find_model(model, configs("models")));
  request.precision = model::Precision::kBf16;
  request.software.launch_call = request.software.forward_gap = Duration{};
  request.gpu.stream_gap = Duration{};
  request.gpu.graph_gap.reset();
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.scheduler.max_num_seqs = 64;
  settings.cache = CacheBlocks{2000};
  settings.tensor = tensor;
  settings.members = members;
  return must(plan_server(request, settings));
}

/// LLaMA2-7B over two GPUs.
ServerPlan split_plan() { return plan_of("llama2-7b", kGpus, 1); }

/// Two members, each on a GPU, which share 128 experts.
ServerPlan group_plan(DecodeMode decode = DecodeMode::kGraph) {
  return plan_of("qwen3-30b-a3b", 1, kGpus, decode);
}

double in_ns(Duration time) { return static_cast<double>(to_ns(time)); }

/// Sequences that decode their next token.
serving::ScheduledStep decode_step(std::uint32_t sequences, std::uint32_t context) {
  return serving::decode_step(1, sequences, context);
}

serving::ScheduledStep prompt_step(std::uint32_t tokens) {
  serving::ScheduledStep step;
  step.add({.new_tokens = tokens, .prefill = true, .emits = true});
  return step;
}

class End final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override { end = now - kSimStart; }
  Duration end{};
};

/// The GPUs on which the server and ranks of a job run.
class ServerGpus {
 public:
  explicit ServerGpus(const ServerPlan& plan, workload::JobProgram job = {},
                      workload::RunObserver* observer = nullptr)
      : plan_(plan), topology_(switched(plan.gpus())),
        job_(with_links(std::move(job), topology_)), machine_(gpu_, &job_),
        ends_(plan.gpus()), job_ends_(plan.gpus()) {
    for (std::uint32_t member = 0; member < plan_.members; ++member) {
      tensor_.push_back(exchanges_among(member * plan_.split.tensor, plan_.split.tensor));
    }
    experts_ = exchanges_among(0, plan_.gpus());
    for (std::uint32_t i = 0; i < plan_.gpus(); ++i) add_gpu(i, observer);
  }

  Duration time_of(const serving::ScheduledStep& step) {
    return time_of({step}, programs_[0]->shape_of(step));
  }
  /// Steps of all members.
  Duration time_of(const std::vector<serving::ScheduledStep>& steps,
                   const serving::StepShape& shape) {
    for (std::uint32_t i = 0; i < plan_.gpus(); ++i) {
      const serving::ScheduledStep& step = steps[i / plan_.split.tensor];
      runs_[i]->start_thread(programs_[i]->set(step, shape, false), kSimStart);
    }
    machine_.conductor().run_until();
    for (std::uint32_t i = 1; i < plan_.split.tensor; ++i) EXPECT_EQ(ends_[0].end, ends_[i].end);
    return std::ranges::max_element(ends_, {}, &End::end)->end;
  }
  [[nodiscard]] Duration job_time() const { return job_ends_[0].end; }
  /// Of an exchange over the first `gpus`, alone.
  [[nodiscard]] Duration exchange_time(network::CollectivePattern kind, std::uint64_t bytes,
                                       std::uint32_t gpus = kGpus) const {
    return topology_.solo_time(topology_.plan(kind, Bytes{bytes}, network::strided_group(0, gpus)));
  }
  [[nodiscard]] workload::Machine& machine() { return machine_; }
  [[nodiscard]] workload::ProgramRun& run(std::size_t gpu) { return *runs_[gpu]; }
  [[nodiscard]] ServerProgram& program(std::size_t gpu) { return *programs_[gpu]; }

 private:
  static workload::JobProgram with_links(workload::JobProgram job,
                                         const network::Topology& topology) {
    if (job.links.empty()) job.links = topology.links();
    return job;
  }
  std::unique_ptr<ServerExchanges> exchanges_among(std::uint32_t first, std::uint32_t gpus) {
    network::Group group;
    for (std::uint32_t i = 0; i < gpus; ++i) group.listed.push_back(first + i);
    return std::make_unique<ServerExchanges>(topology_, std::move(group), *machine_.network());
  }
  void add_gpu(std::uint32_t i, workload::RunObserver* observer) {
    workload::MachineGpu& gpu = machine_.add_gpu();
    const ServerMeetings meetings{tensor_[i / plan_.split.tensor].get(), experts_.get()};
    programs_.push_back(must(ServerProgram::make(plan_, meetings)));
    workload::RunSetup setup;
    setup.repeat = workload::Repeat::kOnePass;
    setup.rendezvous = machine_.network();
    setup.observer = observer != nullptr ? observer : &ends_[i];
    runs_.push_back(&machine_.add_program(gpu, programs_[i]->program(), setup));
    if (job_.ranks.empty()) return;
    setup.client.name = "training";
    setup.observer = &job_ends_[i];
    machine_.add_program(gpu, job_.ranks[i], setup).start_pass(kSimStart);
  }

  ServerPlan plan_;
  network::Topology topology_;
  hardware::GpuSpec gpu_ = plan_.request.gpu;
  workload::JobProgram job_;
  workload::Machine machine_;
  std::vector<std::unique_ptr<ServerExchanges>> tensor_;
  std::unique_ptr<ServerExchanges> experts_;
  std::vector<std::unique_ptr<ServerProgram>> programs_;
  std::vector<workload::ProgramRun*> runs_;
  std::vector<End> ends_;
  std::vector<End> job_ends_;
};

/// A step of one GPU's kernels, without exchanges: its time, that of its kernels, and the gaps
/// between its operations, copies left out.
struct WithoutExchanges {
  Duration step{};
  Duration kernels{};
  Duration gaps{};
};

WithoutExchanges without_exchanges(const ServerPlan& plan, const serving::ScheduledStep& step,
                                   const serving::StepShape& shape) {
  const auto program = must(ServerProgram::make(plan));
  workload::Machine machine(plan.request.gpu);
  End end;
  workload::RunSetup setup;
  setup.repeat = workload::Repeat::kOnePass;
  setup.observer = &end;
  auto& run = machine.add_program(machine.add_gpu(), program->program(), setup);
  const std::uint32_t thread = program->set(step, shape, false);
  run.start_thread(thread, kSimStart);
  machine.conductor().run_until();
  WithoutExchanges out{end.end};
  for (const program::Step& call : program->program().threads[thread].steps) {
    for (std::uint32_t i = 0; i < call.count; ++i) {
      const program::Op& op = program->program().ops[call.target + i];
      if (op.kind == program::WorkKind::kCopy) continue;
      if (out.kernels > Duration{}) out.gaps += op.gap.duration();
      if (op.kind == program::WorkKind::kKernel) out.kernels += op.duration;
    }
  }
  return out;
}

WithoutExchanges without_exchanges(const ServerPlan& plan, const serving::ScheduledStep& step) {
  return without_exchanges(plan, step, must(ServerProgram::make(plan))->shape_of(step));
}

step_cost::ServerLayout layout_of(const ServerPlan& plan) {
  step_cost::ServerLayout layout;
  layout.tensor = plan.split.tensor;
  layout.data = plan.members;
  layout.expert_parallel = plan.shares_experts();
  layout.link = {{kPort}, kHop, model::GpuMesh::kFull};
  return layout;
}

TEST(ServerOverGpus, EachGpuHasItsPartOfWeightsAndCache) {
  InferenceRequest request = generation(1, 1);
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.cache = CacheBlocks{1000};
  const ServerPlan whole = must(plan_server(request, settings));
  settings.tensor = 4;
  const ServerPlan split = must(plan_server(request, settings));
  EXPECT_EQ(split.gpus(), 4U);
  EXPECT_EQ(4 * split.memory.kv_cache, whole.memory.kv_cache);
  EXPECT_NEAR(4 * split.memory.weights, whole.memory.weights, 1e-3 * whole.memory.weights);
  settings.tensor = 3;
  EXPECT_FALSE(plan_server(request, settings));
}

// 8 sequences: an all-reduce of 8 x 4096 x 2 bytes after the embedding and twice in each of 32
// blocks, and 8 x 32000 x 2 bytes of logits gathered.
TEST(ServerOverGpus, AStepTakesItsKernelsAndItsExchanges) {
  const ServerPlan plan = split_plan();
  const serving::ScheduledStep step = decode_step(8, 700);
  ServerGpus server(plan);
  const Duration all = server.time_of(step);
  const WithoutExchanges alone = without_exchanges(plan, step);
  // Each of two GPUs reads the other's array.
  const Duration reduce = server.exchange_time(network::CollectivePattern::kAllGather, 131'072);
  const Duration gather = server.exchange_time(network::CollectivePattern::kAllGather, 512'000);
  EXPECT_EQ(reduce, Duration{6'000 + 656});          // a hop, 65,536 bytes over 100 GB/s
  EXPECT_EQ(gather, Duration{6'000 + 2'560});        // a hop, half of the logits
  EXPECT_EQ(all - alone.step, 65 * reduce + gather);
}

/// The other road, `scripts/judge`: the step cost model of the same layout.
struct ServerAlone {
  explicit ServerAlone(const ServerPlan& plan)
      : layout(layout_of(plan)), model(plan.request.model),
        times(model, layout, plan.request.gpu, plan.request.efficiency) {}

  step_cost::ServerLayout layout;
  model::ModelSpec model;
  step_cost::ModelTimes times;
  step_cost::EngineSpec spec;
  step_cost::EngineCost cost{times, std::get<model::TransformerSpec>(model.network), layout, spec,
                             step_cost::vllm_graphs({.max_num_seqs = 64})};
  step_cost::LoneCost alone{cost};
};

TEST(ServerOverGpus, AStepTakesWhatTheServerAloneTakes) {
  const ServerPlan plan = split_plan();
  const serving::ScheduledStep step = decode_step(8, 700);
  const Duration all = ServerGpus(plan).time_of(step);
  const WithoutExchanges alone = without_exchanges(plan, step);
  ServerAlone server(plan);
  const Duration copies = alone.step - alone.kernels;  // and the host's calls, which cost nothing
  EXPECT_LT(copies, microseconds{20});
  // Exchanges are rounded up.
  EXPECT_NEAR(in_ns(server.alone.step_time(step, false)), in_ns(all - copies), 66);
}

/// LLaMA2-7B, whose vocabulary eight GPUs share without padding.
ServerPlan even_plan(std::uint32_t gpus) {
  ServerPlan plan = plan_of("llama2-7b", gpus, 1);
  std::get<model::TransformerSpec>(plan.request.model.network).vocabulary = 32'768;
  return plan;
}

// 65 all-reduces of 8,192 bytes a token: in one stage a GPU reads 3 arrays, in two 3/2 of one; from
// 8 MiB on a ring takes six hops. A ring's three hops gather 65,536 bytes of logits a sequence.
TEST(ServerOverGpus, FourGpusReduceInOneStageOrTwoOrARing) {
  const ServerPlan plan = even_plan(4);
  const auto exchanges = [&plan](const serving::ScheduledStep& step) {
    return ServerGpus(plan).time_of(step) - without_exchanges(plan, step).step;
  };
  EXPECT_EQ(exchanges(decode_step(8, 700)),
            65 * Duration{6'000 + 1'967} + Duration{18'000 + 3'933});
  EXPECT_EQ(exchanges(decode_step(64, 100)),
            65 * Duration{12'000 + 7'865} + Duration{18'000 + 31'458});
  EXPECT_EQ(exchanges(prompt_step(1024)), 65 * Duration{36'000 + 125'830} + Duration{18'000 + 492});
}

/// Blocks of an all-reduce's kernel among the first four GPUs, of which a ring's has one.
std::uint32_t reduce_blocks(const hardware::ClusterSpec& spec, double bytes) {
  const network::Topology topology(spec);
  workload::JobProgram job;
  job.links = topology.links();
  const hardware::GpuSpec gpu = generation(1, 1).gpu;
  workload::Machine machine(gpu, &job);
  ServerExchanges exchanges(topology, {.listed = {0, 1, 2, 3}}, *machine.network());
  model::Communication what;
  what.bytes = bytes;
  return exchanges.meeting(what).channels;
}

// Of 8,192 bytes each, at most 36.
TEST(ServerOverGpus, GpusReadEachOtherWhereNvlinkJoinsThemOnOneNode) {
  hardware::ClusterSpec spec = switched(4).spec();
  EXPECT_EQ(reduce_blocks(spec, 65'536), 8U);
  EXPECT_EQ(reduce_blocks(spec, 4e6), 36U);
  spec.node.kind = hardware::NodeLink::kPcie;
  EXPECT_EQ(reduce_blocks(spec, 65'536), 1U);
  spec = switched(2).spec();
  spec.nodes = 2;
  spec.nics = {2, {kPort}, kHop};
  EXPECT_EQ(reduce_blocks(spec, 65'536), 1U);
}

/// The plan with an H100's gaps between kernels, also within a graph.
ServerPlan with_gaps(ServerPlan plan) {
  plan.request.gpu.stream_gap = Duration{1'245};
  plan.request.gpu.graph_gap = Duration{448};
  return plan;
}

// Steps of up to 128 tokens are graphs, whole or between attentions. Each operation is rounded.
TEST(ServerOverGpus, AnyStepTakesWhatTheServerAloneTakes) {
  serving::ScheduledStep mixed = decode_step(8, 700);
  mixed.add({.new_tokens = 56, .prefill = true, .emits = true});
  const std::vector<serving::ScheduledStep> steps{
      decode_step(1, 20), decode_step(64, 700), mixed, prompt_step(1), prompt_step(128),
      prompt_step(129), prompt_step(2048)};
  for (const std::uint32_t gpus : {1U, 2U, 4U, 8U}) {
    const ServerPlan plan = with_gaps(even_plan(gpus));
    for (const serving::ScheduledStep& step : steps) {
      SCOPED_TRACE(std::to_string(gpus) + " GPUs, " + std::to_string(step.totals.tokens()) +
                   " tokens");
      ServerAlone server(plan);
      const WithoutExchanges alone = without_exchanges(plan, step);
      const Duration copies = alone.step - alone.kernels - alone.gaps;
      EXPECT_LT(copies, microseconds{20});
      EXPECT_NEAR(in_ns(server.alone.step_time(step, false)),
                  in_ns(ServerGpus(plan).time_of(step) - copies), 120);
    }
  }
}

// 8 and 3 sequences, as 8 each; 16 tokens of 2048 x 2 bytes are gathered and given back in each of
// 48 mixtures.
TEST(ServerOverGpus, MembersExchangeTheTokensOfAllInEveryMixture) {
  const ServerPlan plan = group_plan();
  const std::vector<serving::ScheduledStep> steps{decode_step(8, 700), decode_step(3, 100)};
  constexpr serving::StepShape kShape{serving::StepGraphs::kWhole, 8, 8, 16};
  ServerGpus server(plan);
  const Duration all = server.time_of(steps, kShape);
  const WithoutExchanges slower = without_exchanges(plan, steps[0], kShape);
  const Duration half = server.exchange_time(network::CollectivePattern::kAllGather, 65'536);
  EXPECT_EQ(half, Duration{6'000 + 328});  // a hop, half of 65,536 bytes over 100 GB/s
  // The other GPU, whose attention is shorter, waits in each mixture for this one.
  EXPECT_EQ(all, slower.step + 2 * 48 * half);
}

/// Holds a step of two members, the first of which is the slower, to the group alone, to `rounding`
/// ns: each operation is rounded.
void expect_time_of_group_alone(const ServerPlan& plan,
                                const std::vector<serving::ScheduledStep>& steps,
                                const serving::StepShape& shape, double rounding) {
  const Duration all = ServerGpus(plan).time_of(steps, shape);
  const WithoutExchanges slower = without_exchanges(plan, steps[0], shape);
  ServerAlone group(plan);
  const std::array<const serving::ScheduledStep*, kGpus> both{&steps[0], &steps[1]};
  EXPECT_NEAR(in_ns(group.cost.step_time(both, false)),
              in_ns(all - (slower.step - slower.kernels - slower.gaps)), rounding);
}

TEST(ServerOverGpus, AStepOfMembersTakesWhatTheGroupAloneTakes) {
  expect_time_of_group_alone(group_plan(), {decode_step(8, 700), decode_step(3, 100)},
                             {serving::StepGraphs::kWhole, 8, 8, 16}, 100);
}

TEST(ServerOverGpus, PromptsOfMembersAreGraphsBetweenAttentionsToo) {
  serving::ScheduledStep mixed = decode_step(8, 700);
  mixed.add({.new_tokens = 32, .prefill = true, .emits = true});
  expect_time_of_group_alone(with_gaps(group_plan()), {mixed, prompt_step(40)},
                             {serving::StepGraphs::kPieces, 40, 40, 80}, 200);
}

// 76 us longer than one graph. At the end the prompt's row is picked first, in some 1.2 us.
TEST(ServerOverGpus, ADecodeStepBesideAPromptIsInPieces) {
  expect_time_of_group_alone(with_gaps(group_plan()), {decode_step(8, 7000), prompt_step(5)},
                             {serving::StepGraphs::kPieces, 8, 8, 16}, 1'300);
}

// Two members over two GPUs each, with 8 and 3 sequences: the mixtures' exchanges are of all four;
// of a member's two are the all-reduces behind embedding and attention, the all-gathers of its
// tokens behind each mixture, and that of its logits. 8 x 2048 x 2 bytes a member, 8 x 152,064 x 2
// of logits, whose rows are a multiple of 256.
TEST(ServerOverGpus, MembersOverSeveralGpusExchangeAmongThemselvesToo) {
  const ServerPlan plan = plan_of("qwen3-30b-a3b", 2, 2);
  ASSERT_EQ(plan.gpus(), 4U);
  EXPECT_EQ(plan.split.expert, 4U);
  const std::vector<serving::ScheduledStep> steps{decode_step(8, 700), decode_step(3, 100)};
  constexpr serving::StepShape kShape{serving::StepGraphs::kWhole, 8, 8, 16};
  ServerGpus server(plan);
  const Duration all = server.time_of(steps, kShape);
  const WithoutExchanges slower = without_exchanges(plan, steps[0], kShape);
  using Kind = network::CollectivePattern;
  const Duration mixture = server.exchange_time(Kind::kAllGather, 65'536, 4) +
                           server.exchange_time(Kind::kReduceScatter, 65'536, 4);
  const Duration member = 49 * server.exchange_time(Kind::kAllGather, 65'536) +
                          48 * server.exchange_time(Kind::kAllGather, 32'768) +
                          server.exchange_time(Kind::kAllGather, 8 * 152'064 * 2);
  EXPECT_EQ(all, slower.step + 48 * mixture + member);
  expect_time_of_group_alone(plan, steps, kShape, 200);
}

// Of 128 experts each GPU has 64, whole; all else is on both.
TEST(ServerOverGpus, MembersHoldTheirPartOfTheExperts) {
  const ServerPlan one = plan_of("qwen3-30b-a3b", 1, 1);
  const ServerPlan two = group_plan();
  EXPECT_EQ(two.gpus(), 2U);
  constexpr double kExperts = 2.0 * 48 * 128 * 3 * 2048 * 768;  // bytes of all
  EXPECT_NEAR(one.memory.weights - two.memory.weights, kExperts / 2, 1e-6 * kExperts);
  EXPECT_EQ(two.memory.kv_cache, one.memory.kv_cache);
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.members = 2;
  EXPECT_THAT(plan_server(generation(1, 1), settings).error().message,
              ::testing::HasSubstr("2 for a model without experts"));
}

/// Requests that arrive 20 ms apart.
class Requests final : public serving::RequestSource {
 public:
  std::optional<serving::Request> next() override {
    if (number_ == 40) return std::nullopt;
    serving::Request request;
    request.number = number_;
    request.arrival = kSimStart + static_cast<std::int64_t>(number_) * milliseconds{20};
    request.prompt_tokens = 200 + 37 * static_cast<std::uint32_t>(number_ % 7);
    request.output_tokens = 20 + 13 * static_cast<std::uint32_t>(number_ % 5);
    ++number_;
    return request;
  }

 private:
  std::uint64_t number_ = 0;
};

class Latencies final : public serving::ServerObserver {
 public:
  void on_arrival(const serving::Request&, serving::ArrivalOutcome what) override {
    EXPECT_EQ(what, serving::ArrivalOutcome::kQueued);
  }
  void on_step(const serving::ScheduledStep&, SimTime, SimTime,
               const serving::Scheduler&) override {}
  void on_finished(const serving::FinishedRequest& request) override {
    sum += to_seconds(request.latency());
    ++count;
  }
  double sum = 0;
  int count = 0;
};

/// The server's program as serve_alone() sees it: each step on a machine of its own.
class OnItsGpus final : public serving::StepCost {
 public:
  explicit OnItsGpus(const ServerPlan& plan) : plan_(plan) {}
  Duration step_time(const serving::ScheduledStep& step, bool) override {
    return ServerGpus(plan_).time_of(step);
  }

 private:
  const ServerPlan& plan_;
};

double latency_of(const ServerPlan& plan, serving::StepCost& cost) {
  serving::Scheduler scheduler(plan.scheduler);
  Requests requests;
  Latencies latencies;
  serving::serve_alone(scheduler, requests, cost, latencies);
  EXPECT_EQ(latencies.count, 40);
  return latencies.sum / latencies.count;
}

// Alone there are no copies, some 11 us a step; and sequences that fill a graph up attend to a
// token, which shortens the mean by which a batch's attention is timed: up to 3 % of a step.
TEST(ServerOverGpus, RequestsWaitAsLongAsOnTheServerAlone) {
  const ServerPlan plan = split_plan();
  ServerAlone server(plan);
  OnItsGpus engine(plan);
  const double alone = latency_of(plan, server.alone);
  EXPECT_NEAR(latency_of(plan, engine), alone, 0.025 * alone);
}

/// Two ranks with one all-reduce of `bytes` from the start on, over the GPUs' ports or over links
/// of its own as fast as these.
workload::JobProgram all_reduce_job(double bytes, bool shares_ports, const hardware::GpuSpec& gpu) {
  const network::Topology topology = switched();
  workload::JobProgram job;
  job.links = topology.links();
  job.transfers.push_back(topology.plan(network::CollectivePattern::kAllReduce,
                                        Bytes{static_cast<std::uint64_t>(bytes)},
                                        network::strided_group(0, kGpus)));
  for (network::LinkLoad& load : job.transfers.front().loads) {
    if (shares_ports) break;
    job.links.push_back({kPort});
    load.link = network::LinkId{static_cast<std::uint32_t>(job.links.size() - 1)};
  }
  workload::JoinedCollective joined;
  joined.participants = kGpus;
  joined.transfer = 0;
  job.collectives.push_back(joined);
  for (std::uint32_t rank = 0; rank < kGpus; ++rank) {
    ProgramWriter writer(rank, gpu);
    OpDraft draft;
    draft.kind = program::WorkKind::kCollective;
    draft.name = writer.name("gradients");
    draft.collective = 0;
    const TimedKernel kernel = collective_kernel(1, gpu);
    draft.profile = writer.add_profile(kernel.profile, kernel.launch);
    writer.wait_for(writer.launch(draft, {}, {}));
    job.ranks.push_back(writer.finish());
  }
  return job;
}

// While training's all-reduce is under way, an exchange has half of each port: its bytes take twice
// as long, and training's as much longer as the exchanges' bytes take alone: 65 x 0.656 + 2.56 us.
TEST(ServerOverGpus, LinksAreSharedWithTraining) {
  const ServerPlan plan = split_plan();
  const serving::ScheduledStep step = decode_step(8, 700);
  constexpr double kBytes = 1e10;  // 100 ms: longer than the step
  ServerGpus apart(plan, all_reduce_job(kBytes, false, plan.request.gpu));
  ServerGpus shared(plan, all_reduce_job(kBytes, true, plan.request.gpu));
  const Duration step_apart = apart.time_of(step);
  const Duration step_shared = shared.time_of(step);
  constexpr double kOwn = 65 * 655.36 + 2'560;  // ns
  EXPECT_LT(step_shared, apart.job_time());
  EXPECT_NEAR(in_ns(step_shared - step_apart), kOwn, 66);
  EXPECT_NEAR(in_ns(shared.job_time() - apart.job_time()), kOwn, 66);
}

class Passes final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override {
    service->pass_finished(now);
  }
  workload::EngineService* service = nullptr;
};

/// Passes steps on, and keeps their tokens.
class RecordedProgram final : public workload::StepProgram {
 public:
  explicit RecordedProgram(workload::StepProgram& program) : program_(program) {}

  const program::Program& program() const override { return program_.program(); }
  serving::StepShape shape_of(const serving::ScheduledStep& step) const override {
    return program_.shape_of(step);
  }
  std::uint32_t set(const serving::ScheduledStep& step, const serving::StepShape& given,
                    bool queued) override {
    tokens.emplace_back(given.padded, given.group);
    return program_.set(step, given, queued);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tokens;  ///< own, group

 private:
  workload::StepProgram& program_;
};

/// Requests of these lengths, in order.
workload::RequestLengths listed(const std::vector<std::uint32_t>& outputs) {
  std::vector<workload::RecordedLength> lengths;
  for (const std::uint32_t output : outputs) {
    workload::RecordedLength& length = lengths.emplace_back();
    length.prompt_tokens = 100;
    length.output_tokens = output;
  }
  return workload::ListedLengths{std::move(lengths), workload::ListedLengths::Pick::kInOrder};
}

/// A service on the two GPUs, of which each is a member or both are one.
class ServiceOnGpus : public workload::ServiceListener {
 public:
  explicit ServiceOnGpus(const ServerPlan& plan, workload::RequestLengths lengths)
      : gpus_(plan, {}, &passes_), programs_{RecordedProgram(gpus_.program(0)),
                                             RecordedProgram(gpus_.program(1))} {
    service_.emplace(gpus_.run(0), programs_[0], plan.scheduler,
                     workload::LengthSequence{std::move(lengths), RandomStream(1, "lengths")},
                     *this);
    if (plan.members > 1) service_->add_member();
    service_->add_gpu(gpus_.run(1), programs_[1]);
    passes_.service = &*service_;
  }

  /// `first` arrive together; then one at the end of each step, till there were `all`.
  void serve(std::uint64_t first, std::uint64_t all) {
    arrived_ = first;
    all_ = all;
    service_->arrive_together(0, first, kSimStart);
    gpus_.machine().conductor().run_until();
    EXPECT_EQ(served, all);
    EXPECT_EQ(gpus_.run(0).passes(), steps);
    EXPECT_EQ(gpus_.run(1).passes(), steps);
  }
  void on_served(const workload::ServedRequest&) override { ++served; }
  void on_batch(std::uint64_t, SimTime now) override {
    ++steps;
    if (arrived_ < all_) service_->arrive_together(arrived_++, 1, now);
  }
  [[nodiscard]] std::uint64_t finished_by(std::size_t member) const {
    return service_->schedulers()[member]->counts().finished;
  }
  [[nodiscard]] const auto& tokens_of(std::size_t gpu) const { return programs_[gpu].tokens; }

  std::uint64_t served = 0;
  std::uint64_t steps = 0;

 private:
  Passes passes_;
  ServerGpus gpus_;
  std::array<RecordedProgram, kGpus> programs_;
  std::optional<workload::EngineService> service_;
  std::uint64_t arrived_ = 0;
  std::uint64_t all_ = 0;
};

using ::testing::ElementsAre, ::testing::Pair;

// A step ends with the later of its GPUs, once.
TEST(ServerOverGpus, TheServiceGoesOnWhenAllGpusHaveDoneTheirPart) {
  ServiceOnGpus server(split_plan(), listed({10, 10, 10}));
  server.serve(3, 3);
  EXPECT_EQ(server.steps, 10U);  // the prompts together, then nine tokens each
}

// The first ends with its prompt, at the first member; the third finds that idle. When the fourth
// comes, each member runs one: the first of equals takes it. By turns it would be the other's.
TEST(ServerOverGpus, RequestsGoToTheMemberThatHasLeastToDo) {
  ServiceOnGpus server(group_plan(), listed({1, 10, 10, 10}));
  server.serve(2, 4);
  EXPECT_EQ(server.finished_by(0), 3U);
  EXPECT_EQ(server.finished_by(1), 1U);
}

// Two prompts and one, as they are; then decode steps of two sequences and of one: graphs of two,
// or as they are.
TEST(ServerOverGpus, GraphsOfMembersAreAsLargeAsTheLargest) {
  ServiceOnGpus graphs(group_plan(), listed({3, 3, 3}));
  graphs.serve(3, 3);
  EXPECT_THAT(graphs.tokens_of(0), ElementsAre(Pair(200, 300), Pair(2, 4), Pair(2, 4)));
  EXPECT_THAT(graphs.tokens_of(1), ElementsAre(Pair(100, 300), Pair(2, 4), Pair(2, 4)));
  ServiceOnGpus eager(group_plan(DecodeMode::kEager), listed({3, 3, 3}));
  eager.serve(3, 3);
  EXPECT_THAT(eager.tokens_of(0), ElementsAre(Pair(200, 300), Pair(2, 3), Pair(2, 3)));
  EXPECT_THAT(eager.tokens_of(1), ElementsAre(Pair(100, 300), Pair(1, 3), Pair(1, 3)));
}

// Also in the graphs of a prompt of 100 tokens.
TEST(ServerOverGpus, AMemberWithoutRequestsTakesPartInEveryStep) {
  ServiceOnGpus server(group_plan(), listed({3}));
  server.serve(1, 1);
  EXPECT_EQ(server.finished_by(1), 0U);
  EXPECT_THAT(server.tokens_of(1), ElementsAre(Pair(104, 208), Pair(1, 2), Pair(1, 2)));
}

}  // namespace
}  // namespace bubblesim::synth
