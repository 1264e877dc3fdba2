// The requests of two measured runs of vLLM (LLMServingSim): a few recorded steps of the engine
// serve them as its layer times do. judged_servers_test.py holds both to what was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <ostream>

#include "sim/base/nearest_rank.hpp"
#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/model_times.hpp"
#include "sim/step_cost/table_times.hpp"
#include "sim/validate/serving/serve_measured.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"
#include "tests/fault.hpp"
#include "tests/folders.hpp"
#include "tests/validation/serving/profile_tables.hpp"

namespace bubblesim::validate {
namespace {

const std::string kRuns = kDataFolder + "/casys-kaist+LLMServingSim/";
constexpr const char* kModel = "Llama-3.1-8B";

/// The settings of a run's vllm/meta.json.
struct Server {
  std::string gpu;
  std::uint32_t max_num_seqs;
  std::optional<std::uint32_t> num_gpu_blocks;

  friend std::ostream& operator<<(std::ostream& out, const Server& server) {
    return out << server.gpu;
  }
};

class MeasuredServers : public ::testing::TestWithParam<Server> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(requests())) GTEST_SKIP() << "no " << requests();
  }

  static std::string requests() {
    return kRuns + "bench/examples/" + GetParam().gpu + "/" + kModel + "/vllm/requests.jsonl";
  }

  static ServerSettings settings() {
    ServerSettings out;
    out.model = std::string("meta-llama/") + kModel;
    out.gpu_label = GetParam().gpu;
    out.max_num_seqs = GetParam().max_num_seqs;
    out.max_num_batched_tokens = 2048;
    out.num_gpu_blocks = GetParam().num_gpu_blocks;
    return out;
  }

  static MeasuredLoad load() {
    const auto read = must(workload::read_arrivals(requests(), workload::ArrivalFormat::kBundle,
                                                   workload::Lengths::kRead));
    MeasuredLoad out;
    for (std::size_t i = 0; i < read.offsets.size(); ++i) {
      out.names.push_back(std::to_string(i));
      serving::Request& request = out.requests.emplace_back();
      request.number = i;
      request.arrival = kSimStart + read.offsets[i];
      request.prompt_tokens = read.lengths[i].prompt_tokens;
      request.output_tokens = read.lengths[i].output_tokens;
    }
    return out;
  }

  static step_cost::LayerTables layers() {
    return must(step_cost::test::profile_tables(
        kRuns + "profiler/perf/" + GetParam().gpu + "/meta-llama/" + kModel + "/bf16"));
  }

  static ServerSetup set_up(std::optional<step_cost::LayerTables> layers) {
    return must(set_up_server(settings(), load(),
                              {kConfigFolder, "vllm-0.19", std::move(layers), {}}));
  }

  static ServedLoad serve(const ServerSetup& setup, step_cost::KernelTimes& kernels) {
    const ServerSettings server = settings();
    step_cost::EngineCost cost(kernels, setup.transformer(), server.layout, setup.engine,
                               setup.captured);
    return serve_group(setup.scheduler, server.layout.data, load().requests, cost);
  }
};

/// Keeps one step in so many as a profiler of the engine would write it.
class Recorder final : public step_cost::KernelTimes {
 public:
  static constexpr std::size_t kEvery = 100;

  explicit Recorder(step_cost::KernelTimes& engine) : engine_(engine) {}

  double batch_us(const step_cost::Batch& batch) override {
    const double us = engine_.batch_us(batch);
    if (asked_++ % kEvery == 0) steps_.steps.push_back(recorded(batch, us));
    return us;
  }
  double experts_us(double group_tokens) override { return engine_.experts_us(group_tokens); }
  const step_cost::RecordedSteps& steps() const { return steps_; }

 private:
  static step_cost::RecordedStep recorded(const step_cost::Batch& batch, double us) {
    step_cost::RecordedStep out;
    const auto add = [](step_cost::StepSums& sums, double q, double k) {
      sums.sequences += 1;
      sums.tokens += q;
      sums.keys += k;
      sums.squares += q * q;
      sums.products += q * k;
    };
    for (const step_cost::PromptChunk& chunk : batch.chunks) {
      add(out.prompts, chunk.tokens, double{1} * chunk.tokens + chunk.cached);
    }
    for (const std::uint32_t keys : batch.decodes) add(out.singles, 1, keys);
    out.kernels_us = us;
    return out;
  }

  step_cost::KernelTimes& engine_;
  step_cost::RecordedSteps steps_;
  std::size_t asked_ = 0;
};

/// Times to first token, times per token and latencies, in seconds.
std::vector<std::vector<double>> times_of(const ServedLoad& load) {
  std::vector<std::vector<double>> out(3);
  for (const SimulatedRequest& request : load.requests) {
    out[0].push_back(to_seconds(request.finished.first_token - request.queued));
    if (const auto tpot = request.finished.tpot()) out[1].push_back(to_seconds(*tpot));
    out[2].push_back(to_seconds(request.finished.last_token - request.queued));
  }
  return out;
}

/// Fifteen: mean and four percentiles of each.
std::vector<double> figures_of(const ServedLoad& load) {
  std::vector<double> out;
  for (std::vector<double>& times : times_of(load)) {
    std::ranges::sort(times);
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    out.push_back(sum / static_cast<double>(times.size()));
    for (const double share : {0.5, 0.9, 0.95, 0.99}) {
      out.push_back(interpolated_quantile(times, share));
    }
  }
  return out;
}

// An engine whose steps take what the tables say, of which a profiler saw one step in a hundred:
// the kernel model, corrected by those, serves the requests as the tables do.
TEST_P(MeasuredServers, AreServedTheSameByAFewRecordedSteps) {
  const step_cost::ServerLayout layout;
  const ServerSetup by_layers = set_up(layers());
  step_cost::TableTimes tables(**by_layers.layers->of_tensor(1), by_layers.transformer(), layout,
                               by_layers.gpu.sm_count);
  Recorder recorder(tables);
  const auto expected = figures_of(serve(by_layers, recorder));
  const ServerSetup by_model = set_up(std::nullopt);
  const step_cost::ModelTimes model(by_model.model, layout, by_model.gpu, *by_model.efficiency);
  step_cost::RecordedTimes corrected(model, recorder.steps(), by_model.captured, 1);
  const auto found = figures_of(serve(by_model, corrected));
  ASSERT_EQ(expected.size(), 15U);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i] / expected[i], 1, 0.04);
}

INSTANTIATE_TEST_SUITE_P(Gpus, MeasuredServers,
                         ::testing::Values(Server{"RTX4090", 256, 2588},
                                           Server{"RTXPRO6000", 128, {}}),
                         [](const auto& tested) { return tested.param.gpu; });

}  // namespace
}  // namespace bubblesim::validate
