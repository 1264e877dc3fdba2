// Whole servers against measured ones: LLMServingSim's runs of vLLM 0.19 with Llama-3.1-8B. Limits
// are what is reached, with a little room; docs/validation.md says what does not fit.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <ostream>

#include "sim/step_cost/engine_cost.hpp"
#include "sim/step_cost/table_times.hpp"
#include "sim/validate/serving/judge_serving.hpp"
#include "tests/folders.hpp"
#include "tests/validation/serving/profile_tables.hpp"

namespace bubblesim::validate {
namespace {

const std::string kRuns = kDataFolder + "/casys-kaist+LLMServingSim/";
constexpr const char* kModel = "Llama-3.1-8B";

struct ServerLimits {
  std::string gpu;
  double tables;  ///< most mean error with layer tables
  double model;   ///< with the kernel model

  friend std::ostream& operator<<(std::ostream& out, const ServerLimits& limits) {
    return out << limits.gpu;
  }
};

class MeasuredServers : public ::testing::TestWithParam<ServerLimits> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << "no " << folder();
  }

  std::string folder() const { return kRuns + "bench/examples/" + GetParam().gpu + "/" + kModel; }

  ServingBundle bundle() const {
    auto read = read_serving_bundle(folder());
    EXPECT_TRUE(read) << read.error().text();
    return *std::move(read);
  }

  step_cost::LayerTables layers() const {
    auto profile = step_cost::test::profile_tables(
        kRuns + "profiler/perf/" + GetParam().gpu + "/meta-llama/" + kModel + "/bf16");
    EXPECT_TRUE(profile) << profile.error().front().text();
    return *std::move(profile);
  }

  JudgedBundle judge(std::optional<step_cost::LayerTables> layers,
                     std::optional<step_cost::RecordedSteps> steps = std::nullopt) const {
    const ServingBundle measured = bundle();
    auto judged = judge_bundle(
        measured, {kConfigFolder, "vllm-0.19", std::move(layers), std::move(steps)});
    EXPECT_TRUE(judged) << judged.error().front().text();
    EXPECT_EQ(judged->figures.size(), 15U);
    EXPECT_EQ(judged->load.counts.finished, measured.requests.size());
    std::printf("%s: %.2f %%\n", GetParam().gpu.c_str(), 100 * judged->errors.mean_absolute);
    return *std::move(judged);
  }

  double mean_error(std::optional<step_cost::LayerTables> layers) const {
    return judge(std::move(layers)).errors.mean_absolute;
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
  void add_counters(CounterSet&) const override {}
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

TEST_P(MeasuredServers, AreMetWithLayerTables) {
  EXPECT_LT(mean_error(layers()), GetParam().tables);
}

// An engine whose steps take what the tables say, of which a profiler saw one step in a hundred:
// the kernel model, corrected by those, serves the requests as the tables do.
TEST_P(MeasuredServers, AreServedTheSameByAFewRecordedSteps) {
  const ServingBundle measured = bundle();
  const auto setup = set_up_server(measured, {kConfigFolder, "vllm-0.19", layers(), {}});
  ASSERT_TRUE(setup) << setup.error().front().text();
  const step_cost::ServerLayout& layout = measured.settings.layout;
  step_cost::TableTimes tables(**setup->layers->of_tensor(layout.tensor), setup->transformer(),
                               layout, setup->gpu.sm_count);
  Recorder recorder(tables);
  step_cost::EngineCost cost(recorder, setup->transformer(), layout, setup->engine,
                             setup->capture_sizes);
  (void)serve_group(setup->scheduler, layout.data, requests_of(measured), cost);
  const JudgedBundle by_tables = judge(layers());
  const JudgedBundle by_steps = judge(std::nullopt, recorder.steps());
  for (std::size_t i = 0; i < by_tables.figures.size(); ++i) {
    EXPECT_NEAR(by_steps.figures[i].simulated / by_tables.figures[i].simulated, 1, 0.04)
        << by_tables.figures[i].name;
  }
}

TEST_P(MeasuredServers, AreMetByTheKernelModel) {
  EXPECT_LT(mean_error(std::nullopt), GetParam().model);
}

INSTANTIATE_TEST_SUITE_P(Gpus, MeasuredServers,
                         ::testing::Values(ServerLimits{"RTX4090", 0.055, 0.02},
                                           ServerLimits{"RTXPRO6000", 0.013, 0.045}),
                         [](const auto& tested) { return tested.param.gpu; });

}  // namespace
}  // namespace bubblesim::validate
