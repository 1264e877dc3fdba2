// As domains_test.cpp, on jobs drawn at random: tensor, data and pipeline groups over several
// streams and threads, ranks with timings of their own or with many things at one instant,
// collectives that end by themselves or share links, under several policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/base/random.hpp"
#include "sim/observe/report.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/run/simulation.hpp"
#include "sim/schedule/bubble_table.hpp"

namespace bubblesim::run {
namespace {

using program::Op, program::Program, program::ShortSpan, program::Step, program::StepKind;

struct Shape {
  std::string name;
  std::uint32_t tensor = 1;
  std::uint32_t data = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t grain = 1;    ///< ns; times are whole ones: many things happen at once
  bool own_timings = true;    ///< false: all ranks draw the same durations
  bool links = false;         ///< most collectives have a transfer
  bool two_threads = false;   ///< a second one launches what is between pipeline stages
  double slowdown = 1;        ///< of rank 1
  [[nodiscard]] std::uint32_t ranks() const { return tensor * data * pipeline; }
};

constexpr std::uint16_t kCompute = 0;
constexpr std::uint16_t kTensorStream = 1;
constexpr std::uint16_t kDataStream = 2;
constexpr std::uint16_t kPipelineStream = 3;
constexpr std::uint16_t kStreams = 4;

Step& add_step(Program& program, std::uint32_t thread, StepKind kind, std::uint32_t target = 0) {
  Step& step = program.threads[thread].steps.emplace_back();
  step.kind = kind;
  step.target = target;
  return step;
}

/// Adds an operation, and the step that launches it.
Op& add_launch(Program& program, std::uint32_t thread, std::uint32_t think, std::uint32_t cost) {
  const auto index = static_cast<std::uint32_t>(program.ops.size());
  Step& step = add_step(program, thread, StepKind::kLaunch, index);
  step.think = ShortSpan{think};
  step.cost = ShortSpan{cost};
  step.count = 1;
  Op& op = program.ops.emplace_back();
  op.launch_lag = ShortSpan{2'000};
  return op;
}

/// Collectives are drawn one after another and come in this order on every rank, each behind
/// kernels, and what waits for anything waits for what was drawn before: nothing waits for ever.
class RandomJob {
 public:
  RandomJob(const Shape& shape, const hardware::GpuSpec& device, std::uint64_t seed)
      : shape_(shape), random_(seed, "random job") {
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) begin(rank, device);
    for (std::uint32_t i = 0; i < kCollectives; ++i) add_collective();
    for (Program& program : job_.ranks) end(program);
    job_.links = {BytesPerSecond{20e9}, BytesPerSecond{30e9}, BytesPerSecond{50e9}};
  }
  [[nodiscard]] const workload::JobProgram& job() const { return job_; }

 private:
  static constexpr std::uint32_t kCollectives = 60;

  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_.uniform() * limit);
  }
  bool chance(double probability) { return random_.uniform() < probability; }
  std::uint32_t span(std::uint32_t longest) { return below(longest) / shape_.grain * shape_.grain; }

  void begin(std::uint32_t rank, const hardware::GpuSpec& device) {
    Program& program = job_.ranks.emplace_back();
    program.rank = rank;
    program.stream_count = kStreams;
    program.threads.resize(shape_.two_threads ? 2 : 1);
    program.start_offset = Duration{shape_.own_timings ? span(30'000) : 0};
    program.profiles = {
        program::profile_kernel({264, 256, 64, 0}, program::KernelClass::kMemory, device),
        program::profile_kernel({64, 256, 64, 0}, program::KernelClass::kCompute, device),
        program::profile_kernel({16, 512, 64, 0}, program::KernelClass::kMemory, device)};
    if (chance(0.3)) program.own_kernels = program::OwnKernels::kCompete;
    add_step(program, 0, StepKind::kIteration);
  }

  static void end(Program& program) {
    add_step(program, 0, StepKind::kWaitStream, kCompute);
    add_step(program, 0, StepKind::kEnd, 1);
    if (program.threads.size() > 1 && program.threads.back().steps.empty()) {
      program.threads.pop_back();
    }
  }

  Op& launch(Program& program, std::uint32_t thread) {
    Op& op = add_launch(program, thread, span(1'500), span(1'500));
    op.result_slot = program.result_slots++;
    op.first_edge = static_cast<std::uint32_t>(program.edges.size());
    return op;
  }

  void wait_for(Program& program, Op& op, std::uint32_t before, std::uint32_t passes_back = 0) {
    program.edges.push_back({before, ShortSpan{span(1'000)}, passes_back});
    ++op.edge_count;
  }

  void add_kernels(Program& program, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      Op& op = launch(program, 0);
      op.duration = Duration{shape_.grain + span(12'000)};
      op.profile = chance(0.5) ? 0 : 1;
      const std::uint32_t last = op.result_slot;  // as many slots as operations
      if (last > 0 && chance(0.2)) wait_for(program, op, last - 1);
      if (last > 0 && chance(0.1)) wait_for(program, op, below(last), 1);
    }
    if (chance(0.05)) add_step(program, 0, StepKind::kWaitStream, kCompute);
  }

  // All timings of the ranks are the same if they draw from the same place.
  template <class Draw>
  void on_each(const std::vector<std::uint32_t>& members, const Draw& draw) {
    const RandomStream from = random_;
    for (const std::uint32_t rank : members) {
      if (!shape_.own_timings) random_ = from;
      draw(job_.ranks[rank]);
    }
  }

  void add_collective() {
    std::vector<std::uint32_t> all(shape_.ranks());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    on_each(all, [this](Program& program) { add_kernels(program, below(4)); });
    std::uint16_t stream = kTensorStream;
    const std::vector<std::uint32_t> members = draw_group(stream);
    const auto number = static_cast<std::uint32_t>(job_.collectives.size());
    workload::JoinedCollective& joined = job_.collectives.emplace_back();
    joined.participants = static_cast<std::uint32_t>(members.size());
    joined.point_to_point = stream == kPipelineStream;
    if (shape_.links && chance(0.7)) add_transfer(joined);
    const bool modelled = joined.transfer != program::kNoIndex;
    on_each(members, [&](Program& program) {
      add_kernels(program, below(3));
      const auto before = static_cast<std::uint32_t>(program.ops.size());
      Op& op = launch(program, stream == kPipelineStream && shape_.two_threads ? 1 : 0);
      op.kind = program::WorkKind::kCollective;
      op.duration = Duration{modelled ? 0 : shape_.grain + span(20'000)};
      op.profile = 2;
      op.stream = stream;
      op.collective = number;
      if (before > 0 && chance(0.8)) wait_for(program, op, before - 1);
    });
  }

  std::vector<std::uint32_t> draw_group(std::uint16_t& stream) {
    const std::uint32_t t = below(shape_.tensor), d = below(shape_.data);
    const std::uint32_t p = below(shape_.pipeline);
    const auto rank = [this](std::uint32_t stage, std::uint32_t replica, std::uint32_t part) {
      return (stage * shape_.data + replica) * shape_.tensor + part;
    };
    std::vector<std::uint32_t> members;
    if (p + 1 < shape_.pipeline && chance(0.5)) {
      stream = kPipelineStream;
      members = {rank(p, d, t), rank(p + 1, d, t)};
    } else if (shape_.data > 1 && (shape_.tensor == 1 || chance(0.3))) {
      stream = kDataStream;
      for (std::uint32_t i = 0; i < shape_.data; ++i) members.push_back(rank(p, i, t));
    } else if (chance(0.8)) {
      for (std::uint32_t i = 0; i < shape_.tensor; ++i) members.push_back(rank(p, d, i));
    } else {
      stream = kDataStream;
      for (std::uint32_t i = 0; i < shape_.ranks(); ++i) members.push_back(i);
    }
    return members;
  }

  void add_transfer(workload::JoinedCollective& joined) {
    joined.transfer = static_cast<std::uint32_t>(job_.transfers.size());
    network::Transfer& transfer = job_.transfers.emplace_back();
    transfer.latency = Duration{shape_.grain + span(5'000)};
    const std::uint32_t first = below(3);
    for (std::uint32_t i = 0; i < 1 + below(2); ++i) {
      transfer.loads.push_back({network::LinkId{(first + i) % 3}, 1'000.0 * (1 + below(400))});
    }
  }

  Shape shape_;
  RandomStream random_;
  workload::JobProgram job_;
};

hardware::GpuSpec device() {
  hardware::GpuSpec spec;
  spec.sm_count = 132;
  spec.sm.shared_memory_bytes = 233472;
  spec.part.dark_clock_gain = 1.05;  // a capped client's kernels may end earlier than alone
  spec.time_slice = Duration{200'000};
  spec.context_switch = Duration{20'000};
  spec.completion_notice = Duration{5'000};
  spec.contention = {.compute_kernel_dram_share = 0.2, .memory_kernel_dram_share = 0.9,
                     .unknown_kernel_dram_share = 0.5, .compute_kernel_issue_share = 0.7,
                     .memory_kernel_issue_share = 0.2, .unknown_kernel_issue_share = 0.4};
  return spec;
}

Program filler_program(const hardware::GpuSpec& spec) {
  Program program;
  program.stream_count = 1;
  program.threads.resize(1);
  program.profiles = {
      program::profile_kernel({200, 256, 64, 0}, program::KernelClass::kMemory, spec)};
  for (std::uint32_t i = 0; i < 40; ++i) {
    Op& op = add_launch(program, 0, 700, 800);
    op.duration = Duration{3'000 + i * 211};
    op.profile = 0;
  }
  add_step(program, 0, StepKind::kWaitDevice);
  return program;
}

LoadedRun load(const Shape& shape, std::uint64_t seed) {
  LoadedRun loaded;
  loaded.device = device();
  loaded.training = RandomJob(shape, loaded.device, seed).job();
  loaded.config.seed = seed;
  loaded.config.warmup = Duration{1'000'000};
  loaded.config.duration = Duration{6'000'000};
  if (seed % 3 == 0) {
    loaded.config.duration.reset();
    loaded.config.iterations = 3;
  }
  if (shape.slowdown != 1) loaded.config.training.stragglers = {{1, shape.slowdown}};
  const Shared program(LoadedFiller{filler_program(loaded.device)});
  for (const bool online : {false, true}) {
    FillerConfig& filler = loaded.config.fillers.emplace_back();
    filler.name = online ? "online" : "offline";
    filler.memory = Bytes{1'000'000};
    if (online) {
      filler.mode = observe::FillerMode::kOnline;
      filler.arrivals = workload::PoissonArrivals{4'000};
    }
    loaded.fillers.push_back(program);
  }
  return loaded;
}

struct Outcome {
  std::string text;  ///< the report, and how each GPU was used over time
  double in_windows = 0;
  std::uint64_t events = 0;
};

Outcome run(const LoadedRun& loaded, RunScenario scenario, engine::Windows windows,
            std::size_t threads) {
  scenario.gpus = {windows, threads};
  scenario.limit = Duration{50'000'000};
  scenario.usage.interval = Duration{100'000};
  Simulation simulation(loaded, scenario);
  auto result = simulation.run();
  if (!result) return {result.error().text()};
  observe::RunReport report;
  report.policies.push_back(*std::move(result));
  const auto in_windows = static_cast<double>(simulation.conductor().events_in_windows());
  return {observe::report_json(report) + observe::usage_rows(report),
          in_windows / static_cast<double>(simulation.conductor().events()),
          simulation.conductor().events()};
}

const policy::Registry& registry() {
  static const policy::Registry all = policies::builtin_policies();
  return all;
}

constexpr std::string_view kCapped = "mps, training at 90 %";
constexpr std::string_view kFast = "tgs, a fast clock";

/// A policy's defaults, but for the client that is capped and the clock that 50 ms hold.
policy::ParameterSet parameters_of(const policy::PolicySpec& policy, std::string_view name) {
  std::vector<policy::GivenParameter> given;
  if (name == kCapped) given = {{"training_percentage", "90"}};
  if (name == kFast) given = {{"window", "1ms"}, {"poll", "200us"}, {"report_period", "2ms"}};
  return *policy::check_parameters(policy, given, "", "");
}

class RandomDomains : public testing::TestWithParam<Shape> {};

TEST_P(RandomDomains, NoResultDependsOnHowGpusRunBesideEachOther) {
  double most_in_windows = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const LoadedRun loaded = load(GetParam(), seed);
    const auto bubbles = schedule::measure_bubbles(*loaded.training, loaded.device);
    ASSERT_TRUE(bubbles) << bubbles.error().text();
    for (const std::string_view name :
         {std::string_view(), std::string_view("mps"), kCapped, std::string_view("time_slicing"),
          std::string_view("reef"), kFast, std::string_view("orion"),
          std::string_view("pipefill")}) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      RunScenario scenario;
      policy::ParameterSet parameters;
      if (!name.empty()) {
        scenario.policy = *registry().find(name.substr(0, name.find(',')));
        parameters = parameters_of(*scenario.policy, name);
        scenario.parameters = &parameters;
        scenario.bubbles = &*bubbles;
        scenario.fillers = {0, 1};
      }
      const Outcome in_order = run(loaded, scenario, engine::Windows::kNever, 1);
      ASSERT_GT(in_order.events, 1'000U) << in_order.text;
      const Outcome always = run(loaded, scenario, engine::Windows::kAlways, 1);
      EXPECT_EQ(always.text, in_order.text);
      EXPECT_EQ(always.events, in_order.events);
      EXPECT_EQ(run(loaded, scenario, engine::Windows::kWorthwhile, 1).text, in_order.text);
      most_in_windows = std::max(most_in_windows, always.in_windows);
      // Threads that meet this often take seconds on a busy machine.
      if (seed > 1 || scenario.fillers.empty()) continue;
      EXPECT_EQ(run(loaded, scenario, engine::Windows::kWorthwhile, 3).text, in_order.text);
    }
  }
  // Else the test would compare what never differs.
  EXPECT_GE(most_in_windows, GetParam().slowdown < 1 ? 0.1 : 0.4);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, RandomDomains,
    testing::Values(
        Shape{.name = "data", .data = 6},
        Shape{.name = "data_ties", .data = 6, .grain = 1'000},
        Shape{.name = "data_alike", .data = 6, .grain = 500, .own_timings = false},
        Shape{.name = "tensor_data", .tensor = 2, .data = 3},
        Shape{.name = "tensor_data_ties", .tensor = 2, .data = 3, .grain = 2'000, .links = true},
        Shape{.name = "pipeline", .pipeline = 4, .two_threads = true},
        Shape{.name = "pipeline_links", .pipeline = 4, .links = true},
        Shape{.name = "all", .tensor = 2, .data = 2, .pipeline = 3, .links = true,
              .two_threads = true},
        Shape{.name = "all_ties", .tensor = 2, .data = 2, .pipeline = 3, .grain = 1'000,
              .own_timings = false, .links = true},
        Shape{.name = "slow_rank", .tensor = 2, .data = 2, .slowdown = 1.4},
        Shape{.name = "fast_rank", .tensor = 2, .data = 2, .slowdown = 0.6}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace bubblesim::run
