// A server over two GPUs, of one member or of two: its kernels are those of the split model, its exchanges the network's,
// and links that training loads too are shared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "sim/serving/lone_server.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/synth/pass_writer.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/workload/engine_service.hpp"
#include "sim/workload/machine.hpp"
#include "tests/unit/sim/synth/inference/requests.hpp"

namespace bubblesim::synth {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kGpus = 2;
constexpr double kPort = 100e9;  // bytes/s
constexpr Duration kHop = microseconds{2};

/// Two GPUs on one switch whose rings take a hop a step and their bytes, nothing else: the form of
/// step_cost::exchange_us.
network::Topology two_gpus() {
  hardware::ClusterSpec spec;
  spec.name = "two";
  spec.gpus_per_node = kGpus;
  spec.node.bandwidth = {kPort};
  spec.collectives.ring_hop = {kHop, kHop, kHop};
  spec.collectives.tree_hop = {kHop, kHop, kHop};
  return network::Topology(spec);
}

/// Hosts cost nothing, and GPUs wait for nothing between kernels.
ServerPlan plan_of(const std::string& model, std::uint32_t tensor, std::uint32_t members) {
  InferenceRequest request = generation(1, 1, DecodeMode::kGraph);
  request.model = value(model::find_model(model, configs("models")));
  request.precision = model::Precision::kBf16;
  request.software.launch_call = request.software.forward_gap = Duration{};
  request.gpu.stream_gap = Duration{};
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.scheduler.max_num_seqs = 64;
  settings.cache = CacheBlocks{2000};
  settings.tensor = tensor;
  settings.members = members;
  return value(plan_server(request, settings));
}

/// LLaMA2-7B over two GPUs.
ServerPlan split_plan() { return plan_of("llama2-7b", kGpus, 1); }

/// Two members, each on a GPU, which share 128 experts.
ServerPlan group_plan() { return plan_of("qwen3-30b-a3b", 1, kGpus); }

double in_ns(Duration time) { return static_cast<double>(to_ns(time)); }

/// Sequences that decode their next token.
serving::Step decode_step(std::uint32_t sequences, std::uint32_t context) {
  serving::Step step;
  for (std::uint32_t i = 0; i < sequences; ++i) {
    step.add({.request = i, .context = context, .emits = true});
  }
  return step;
}

class End final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override { end = now - kSimStart; }
  Duration end{};
};

/// The two GPUs, on which the server and ranks of a job run.
class TwoGpus {
 public:
  explicit TwoGpus(const ServerPlan& plan, workload::JobProgram job = {},
                   workload::RunObserver* observer = nullptr)
      : plan_(plan), job_(with_links(std::move(job), topology_)), machine_(gpu_, &job_),
        exchanges_(topology_, network::strided_group(0, kGpus), *machine_.network()) {
    for (std::uint32_t i = 0; i < kGpus; ++i) {
      gpus_.push_back(&machine_.add_gpu());
      programs_.push_back(value(ServerProgram::make(plan_, {&exchanges_, &exchanges_})));
      workload::RunSetup setup;
      setup.repeat = workload::Repeat::kOnePass;
      setup.rendezvous = machine_.network();
      setup.observer = observer != nullptr ? observer : &ends_[i];
      runs_.push_back(&machine_.add_program(*gpus_[i], programs_[i]->program(), setup));
      if (job_.ranks.empty()) continue;
      setup.client.name = "training";
      setup.observer = &job_ends_[i];
      machine_.add_program(*gpus_[i], job_.ranks[i], setup).start_pass(kSimStart);
    }
  }

  Duration time_of(const serving::Step& step) {
    const std::uint32_t tokens = programs_[0]->tokens_alone(step);
    return time_of({step, step}, {{{tokens, tokens}, {tokens, tokens}}});
  }
  /// Of two members, each on one of the GPUs.
  Duration time_of(const std::array<serving::Step, kGpus>& steps,
                   const std::array<workload::StepTokens, kGpus>& tokens) {
    for (std::uint32_t i = 0; i < kGpus; ++i) {
      runs_[i]->start_thread(programs_[i]->set(steps[i], tokens[i], false), kSimStart);
    }
    machine_.conductor().run_until();
    EXPECT_TRUE(plan_.members > 1 || ends_[0].end == ends_[1].end);
    return std::max(ends_[0].end, ends_[1].end);
  }
  [[nodiscard]] Duration job_time() const { return job_ends_[0].end; }
  [[nodiscard]] const network::Topology& topology() const { return topology_; }
  [[nodiscard]] workload::Machine& machine() { return machine_; }
  [[nodiscard]] workload::ProgramRun& run(std::size_t gpu) { return *runs_[gpu]; }
  [[nodiscard]] ServerProgram& program(std::size_t gpu) { return *programs_[gpu]; }

 private:
  static workload::JobProgram with_links(workload::JobProgram job,
                                         const network::Topology& topology) {
    if (job.links.empty()) job.links = topology.links();
    return job;
  }

  ServerPlan plan_;
  network::Topology topology_ = two_gpus();
  hardware::GpuSpec gpu_ = plan_.request.gpu;
  workload::JobProgram job_;
  workload::Machine machine_;
  ServerExchanges exchanges_;
  std::vector<workload::MachineGpu*> gpus_;
  std::vector<std::unique_ptr<ServerProgram>> programs_;
  std::vector<workload::ProgramRun*> runs_;
  std::array<End, kGpus> ends_;
  std::array<End, kGpus> job_ends_;
};

/// A step of one GPU's kernels, without exchanges: its time, and that of its kernels.
struct WithoutExchanges {
  Duration step{};
  Duration kernels{};
};

WithoutExchanges without_exchanges(const ServerPlan& plan, const serving::Step& step,
                                   workload::StepTokens tokens) {
  const auto program = value(ServerProgram::make(plan));
  workload::Machine machine(plan.request.gpu);
  End end;
  workload::RunSetup setup;
  setup.repeat = workload::Repeat::kOnePass;
  setup.observer = &end;
  auto& run = machine.add_program(machine.add_gpu(), program->program(), setup);
  const std::uint32_t thread = program->set(step, tokens, false);
  run.start_thread(thread, kSimStart);
  machine.conductor().run_until();
  WithoutExchanges out{end.end, {}};
  for (const program::Step& call : program->program().threads[thread].steps) {
    for (std::uint32_t i = 0; i < call.count; ++i) {
      const program::Op& op = program->program().ops[call.target + i];
      if (op.kind == program::WorkKind::kKernel) out.kernels += op.duration;
    }
  }
  return out;
}

WithoutExchanges without_exchanges(const ServerPlan& plan, const serving::Step& step) {
  const std::uint32_t tokens = value(ServerProgram::make(plan))->tokens_alone(step);
  return without_exchanges(plan, step, {tokens, tokens});
}

step_cost::ServerLayout layout_of(const ServerPlan& plan) {
  step_cost::ServerLayout layout;
  layout.tensor = plan.split.tensor;
  layout.data = plan.members;
  layout.expert_parallel = plan.shares_experts();
  layout.link = {{kPort}, kHop};
  return layout;
}

TEST(ServerGpus, EachGpuHasItsPartOfWeightsAndCache) {
  InferenceRequest request = generation(1, 1);
  EngineSettings settings;
  settings.scheduler.max_model_len = 4096;
  settings.cache = CacheBlocks{1000};
  const ServerPlan whole = value(plan_server(request, settings));
  settings.tensor = 4;
  const ServerPlan split = value(plan_server(request, settings));
  EXPECT_EQ(split.gpus(), 4U);
  EXPECT_EQ(4 * split.memory.kv_cache, whole.memory.kv_cache);
  EXPECT_NEAR(4 * split.memory.weights, whole.memory.weights, 1e-3 * whole.memory.weights);
  settings.tensor = 3;
  EXPECT_FALSE(plan_server(request, settings));
}

// 8 sequences: an all-reduce of 8 x 4096 x 2 bytes after the embedding and twice in each of 32
// blocks, and 8 x 32000 x 2 bytes of logits gathered.
TEST(ServerGpus, AStepTakesItsKernelsAndItsExchanges) {
  const ServerPlan plan = split_plan();
  const serving::Step step = decode_step(8, 700);
  TwoGpus server(plan);
  const Duration all = server.time_of(step);
  const WithoutExchanges alone = without_exchanges(plan, step);
  const auto group = network::strided_group(0, kGpus);
  const Duration reduce = server.topology().solo_time(server.topology().plan(
      network::CollectiveKind::kAllReduce, Bytes{65'536}, group));
  const Duration gather = server.topology().solo_time(server.topology().plan(
      network::CollectiveKind::kAllGather, Bytes{512'000}, group));
  EXPECT_EQ(reduce, Duration{2 * 2'000 + 656});      // 2 hops, 65,536 bytes over 100 GB/s
  EXPECT_EQ(gather, Duration{2'000 + 2'560});        // a hop, half of the logits
  EXPECT_EQ(all - alone.step, 65 * reduce + gather);
}

/// The other road, `validate serving`: the kernel model of the same layout, and rings.
struct ServerAlone {
  explicit ServerAlone(const ServerPlan& plan)
      : layout(layout_of(plan)), model(plan.request.model),
        times(model, layout, plan.request.gpu, plan.request.efficiency) {}

  step_cost::ServerLayout layout;
  model::ModelSpec model;
  step_cost::ModelTimes times;
  step_cost::EngineSpec spec;
  step_cost::EngineCost cost{times, std::get<model::TransformerSpec>(model.network), layout, spec,
                             step_cost::vllm_capture_sizes(64)};
};

TEST(ServerGpus, AStepTakesWhatTheServerAloneTakes) {
  const ServerPlan plan = split_plan();
  const serving::Step step = decode_step(8, 700);
  const Duration all = TwoGpus(plan).time_of(step);
  const WithoutExchanges alone = without_exchanges(plan, step);
  ServerAlone server(plan);
  const Duration copies = alone.step - alone.kernels;  // and the host's calls, which cost nothing
  EXPECT_LT(copies, microseconds{20});
  // Exchanges are rounded up.
  EXPECT_NEAR(in_ns(server.cost.of(step, false)), in_ns(all - copies), 66);
}

// 8 and 3 sequences, as 8 each; 16 tokens of 2048 x 2 bytes are gathered and given back in each of
// 48 mixtures.
TEST(ServerGpus, MembersExchangeTheTokensOfAllInEveryMixture) {
  const ServerPlan plan = group_plan();
  const std::array<serving::Step, kGpus> steps{decode_step(8, 700), decode_step(3, 100)};
  constexpr workload::StepTokens kTokens{8, 16};
  TwoGpus server(plan);
  const Duration all = server.time_of(steps, {kTokens, kTokens});
  const WithoutExchanges slower = without_exchanges(plan, steps[0], kTokens);
  const Duration half = server.topology().solo_time(
      server.topology().plan(network::CollectiveKind::kAllGather, Bytes{65'536},
                             network::strided_group(0, kGpus)));
  EXPECT_EQ(half, Duration{2'000 + 328});  // a hop, half of 65,536 bytes over 100 GB/s
  // The other GPU, whose attention is shorter, waits in each mixture for this one.
  EXPECT_EQ(all, slower.step + 2 * 48 * half);
}

TEST(ServerGpus, AStepOfMembersTakesWhatTheGroupAloneTakes) {
  const ServerPlan plan = group_plan();
  const std::array<serving::Step, kGpus> steps{decode_step(8, 700), decode_step(3, 100)};
  constexpr workload::StepTokens kTokens{8, 16};
  const Duration all = TwoGpus(plan).time_of(steps, {kTokens, kTokens});
  const WithoutExchanges slower = without_exchanges(plan, steps[0], kTokens);
  ServerAlone group(plan);
  const std::array<const serving::Step*, kGpus> both{&steps[0], &steps[1]};
  EXPECT_NEAR(in_ns(group.cost.of_group(both, false)),
              in_ns(all - (slower.step - slower.kernels)), 100);
}

// Of 128 experts each GPU has 64, whole; all else is on both.
TEST(ServerGpus, MembersHoldTheirPartOfTheExperts) {
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
  void on_arrival(const serving::Request&, serving::Arrival what) override {
    EXPECT_EQ(what, serving::Arrival::kQueued);
  }
  void on_step(const serving::Step&, SimTime, SimTime, const serving::Scheduler&) override {}
  void on_finished(const serving::FinishedRequest& request) override {
    sum += to_seconds(request.latency());
    ++count;
  }
  double sum = 0;
  int count = 0;
};

/// The server's program as serve_alone() sees it: each step on a machine of its own.
class OnTwoGpus final : public serving::StepCost {
 public:
  explicit OnTwoGpus(const ServerPlan& plan) : plan_(plan) {}
  Duration of(const serving::Step& step, bool) override { return TwoGpus(plan_).time_of(step); }

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
TEST(ServerGpus, RequestsWaitAsLongAsOnTheServerAlone) {
  const ServerPlan plan = split_plan();
  ServerAlone server(plan);
  OnTwoGpus engine(plan);
  const double alone = latency_of(plan, server.cost);
  EXPECT_NEAR(latency_of(plan, engine), alone, 0.025 * alone);
}

/// Two ranks with one all-reduce of `bytes` from the start on, over the GPUs' ports or over links
/// of its own as fast as these.
workload::JobProgram all_reduce_job(double bytes, bool shares_ports, const hardware::GpuSpec& gpu) {
  const network::Topology topology = two_gpus();
  workload::JobProgram job;
  job.links = topology.links();
  job.transfers.push_back(topology.plan(network::CollectiveKind::kAllReduce,
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
    draft.profile = writer.add_profile(
        program::profile_kernel(collective_needs(1), program::KernelClass::kMemory, gpu),
        collective_launch(1));
    writer.wait_for(writer.launch(draft, {}, {}));
    job.ranks.push_back(writer.finish());
  }
  return job;
}

// While training's all-reduce is under way, an exchange has half of each port: its bytes take twice
// as long, and training's as much longer as the exchanges' bytes take alone: 65 x 0.656 + 2.56 us.
TEST(ServerGpus, LinksAreSharedWithTraining) {
  const ServerPlan plan = split_plan();
  const serving::Step step = decode_step(8, 700);
  constexpr double kBytes = 1e10;  // 100 ms: longer than the step
  TwoGpus apart(plan, all_reduce_job(kBytes, false, plan.request.gpu));
  TwoGpus shared(plan, all_reduce_job(kBytes, true, plan.request.gpu));
  const Duration step_apart = apart.time_of(step);
  const Duration step_shared = shared.time_of(step);
  constexpr double kOwn = 65 * 655.36 + 2'560;  // ns
  EXPECT_LT(step_shared, apart.job_time());
  EXPECT_NEAR(in_ns(step_shared - step_apart), kOwn, 66);
  EXPECT_NEAR(in_ns(shared.job_time() - apart.job_time()), kOwn, 66);
}

/// Counts what an engine's service serves.
class Served final : public workload::ServiceListener {
 public:
  void on_served(const workload::ServedRequest& request) override {
    sum += to_seconds(request.end - request.arrival);
    ++count;
  }
  void on_batch(std::uint64_t, SimTime) override { ++steps; }
  double sum = 0;
  int count = 0;
  int steps = 0;
};

class Passes final : public workload::RunObserver {
 public:
  void on_pass_finished(workload::ProgramRun&, SimTime now) override {
    service->pass_finished(now);
  }
  workload::EngineService* service = nullptr;
};

/// A service on the two GPUs, of which each is a member or all are one.
class ServiceOnTwoGpus {
 public:
  explicit ServiceOnTwoGpus(const ServerPlan& plan) : gpus_(plan, {}, &passes_) {
    const workload::DrawnLengths lengths{workload::FixedLength{100}, workload::FixedLength{10}};
    service_.emplace(gpus_.run(0), gpus_.program(0), plan.scheduler,
                     workload::LengthSequence{lengths, RandomStream(1, "lengths")}, served);
    plan.members > 1 ? service_->add_member(gpus_.run(1), gpus_.program(1))
                     : service_->add_gpu(gpus_.run(1), gpus_.program(1));
    passes_.service = &*service_;
  }

  void serve(std::uint64_t requests) {
    service_->arrive_together(0, requests, kSimStart);
    gpus_.machine().conductor().run_until();
    EXPECT_EQ(served.count, static_cast<int>(requests));
    EXPECT_EQ(gpus_.run(0).passes(), static_cast<std::uint64_t>(served.steps));
    EXPECT_EQ(gpus_.run(1).passes(), static_cast<std::uint64_t>(served.steps));
  }
  [[nodiscard]] std::uint64_t finished_by(std::size_t member) const {
    return service_->schedulers()[member]->counts().finished;
  }

  Served served;

 private:
  Passes passes_;
  TwoGpus gpus_;
  std::optional<workload::EngineService> service_;
};

// A step ends with the later of its GPUs, once.
TEST(ServerGpus, TheServiceGoesOnWhenAllGpusHaveDoneTheirPart) {
  ServiceOnTwoGpus server(split_plan());
  server.serve(3);
  EXPECT_EQ(server.served.steps, 10);  // the prompts together, then nine tokens each
}

// The first request goes to the first member, the second to the other, which waits for nobody yet;
// then again the first of equals.
TEST(ServerGpus, RequestsGoToTheMemberThatHasLeastToDo) {
  ServiceOnTwoGpus server(group_plan());
  server.serve(3);
  EXPECT_EQ(server.served.steps, 10);
  EXPECT_EQ(server.finished_by(0), 2U);
  EXPECT_EQ(server.finished_by(1), 1U);
}

TEST(ServerGpus, AMemberWithoutRequestsTakesPartInEveryStep) {
  ServiceOnTwoGpus server(group_plan());
  server.serve(1);
  EXPECT_EQ(server.served.steps, 10);
  EXPECT_EQ(server.finished_by(1), 0U);
}

}  // namespace
}  // namespace bubblesim::synth
