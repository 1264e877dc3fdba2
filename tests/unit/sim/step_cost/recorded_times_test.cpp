// The kernel model, corrected by recorded steps: Llama 3 8B on an A100-80GB.
#include <gmock/gmock.h>

#include <cmath>

#include "sim/base/json.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/step_cost/model_times.hpp"
#include "tests/folders.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::step_cost {
namespace {

const CapturedGraphs kGraphs = vllm_graphs({.max_num_seqs = 64});

class Corrected : public ::testing::Test {
 protected:
  static Batch decodes(std::uint32_t sequences, std::uint32_t context) {
    return batch_of(serving::decode_step(1, sequences, context - 1));
  }
  static Batch prompt(std::uint32_t tokens, std::uint32_t before) {
    serving::ScheduledStep step;
    step.add({.new_tokens = tokens, .context = before, .prefill = true});
    return batch_of(step);
  }
  static Batch batch_of(const serving::ScheduledStep& step) {
    Batch batch;
    set_batch(step, shape_of(step, kGraphs), batch);
    return batch;
  }
  /// What a profiler would write of it.
  static RecordedStep recorded(const Batch& batch, double us) {
    RecordedStep step;
    for (const PromptChunk& chunk : batch.chunks) {
      const double q = chunk.tokens, k = q + chunk.cached;
      step.prompts = {1, q, k, q * q, q * k};
    }
    const auto count = static_cast<double>(batch.decodes.size());
    if (count > 0) {
      const double keys = count * batch.decodes.front();
      step.singles = {count, count, keys, count, keys};
    }
    step.kernels_us = us;
    return step;
  }
  static RecordedTimes corrected(const std::vector<RecordedStep>& steps) {
    return {model_, {.gpu = "", .source = "", .steps = steps}, kGraphs, 1};
  }
  static double model_us(const Batch& batch) { return model_.batch_us(batch); }

 private:
  inline static const hardware::GpuSpec gpu_ = [] {
    auto gpu = hardware::find_gpu_spec("a100-80gb", kConfigFolder + "/devices").value();
    gpu.graph_gap = Duration{250};
    gpu.stream_gap = Duration{1250};
    return gpu;
  }();
  inline static const model::Efficiency efficiency_ =
      model::find_efficiency("a100-80gb", kConfigFolder + "/efficiency").value();
  inline static const model::ModelSpec llama_ =
      model::find_model("llama3-8b", kConfigFolder + "/models").value();
  inline static const ServerLayout layout_;
  inline static ModelTimes model_{llama_, layout_, gpu_, efficiency_};
};

TEST_F(Corrected, MeetsWhatWasRecorded) {
  const Batch small = decodes(8, 500), large = decodes(64, 900), chunk = prompt(2000, 300);
  RecordedTimes times =
      corrected({recorded(small, 9000), recorded(large, 14'000), recorded(chunk, 150'000)});
  EXPECT_NEAR(times.batch_us(small), 9000, 1e-6);
  EXPECT_NEAR(times.batch_us(large), 14'000, 1e-6);
  EXPECT_NEAR(times.batch_us(chunk), 150'000, 1e-6);
}

// Of 32 blocks of ten kernels, and of four others, each but the first follows 1 us sooner; of
// graphs between attentions all but each attention and the kernel after it.
TEST_F(Corrected, KernelsOfAGraphFollowEachOtherSooner) {
  Batch step = decodes(8, 500);
  EXPECT_EQ(step.shape.graphs, StepGraphs::kWhole);
  const double whole = model_us(step);
  step.shape.graphs = StepGraphs::kNone;
  EXPECT_NEAR(model_us(step) - whole, 323, 1e-6);
  step.shape.graphs = StepGraphs::kPieces;
  EXPECT_NEAR(model_us(step) - whole, 2 * 32, 1e-6);
  EXPECT_EQ(prompt(64, 0).shape.graphs, StepGraphs::kPieces);
  EXPECT_EQ(prompt(2000, 0).shape.graphs, StepGraphs::kNone);
}

TEST_F(Corrected, APaddedGraphIsMetToo) {
  const Batch odd = decodes(37, 700);  // runs as the graph of 40
  EXPECT_EQ(odd.shape.padded, 40U);
  RecordedTimes times = corrected({recorded(odd, 11'000)});
  EXPECT_NEAR(times.batch_us(odd), 11'000, 1e-6);
}

TEST_F(Corrected, BetweenAndBeyondTokensAndContextsMovesAsTheModelSays) {
  const Batch small = decodes(8, 500), large = decodes(32, 500);
  RecordedTimes times = corrected({recorded(small, 1.2 * model_us(small)),
                                   recorded(large, 1.4 * model_us(large))});
  // 16 lies half-way from 8 to 32 by the logarithm.
  for (const std::uint32_t context : {100, 500, 4000}) {
    EXPECT_NEAR(times.batch_us(decodes(16, context)) / model_us(decodes(16, context)), 1.3, 1e-9);
    EXPECT_NEAR(times.batch_us(decodes(1, context)) / model_us(decodes(1, context)), 1.2, 1e-9);
    EXPECT_NEAR(times.batch_us(decodes(64, context)) / model_us(decodes(64, context)), 1.4, 1e-9);
  }
  CounterSet counters;
  times.add_counters(counters);
  EXPECT_EQ(counters.count("beyond_recorded_steps"), 6U);
}

TEST_F(Corrected, EqualTokensCountByTheirGeometricMean) {
  const Batch one = decodes(16, 500), other = decodes(16, 800);
  RecordedTimes times =
      corrected({recorded(one, 1.1 * model_us(one)), recorded(other, 1.3 * model_us(other))});
  EXPECT_NEAR(times.batch_us(one) / model_us(one), std::sqrt(1.1 * 1.3), 1e-9);
}

TEST_F(Corrected, KindsAreToldApartByNewTokensAsInASimulatedStep) {
  // Eight sequences of which three drafted tokens each are checked; a prompt's last token.
  const Batch checks = batch_of(serving::decode_step(3, 8, 400));
  const RecordedStep drafts{{}, {8, 24, 8 * 403.0, 8 * 9.0, 8 * 3 * 403.0}, 12'000};
  const RecordedStep last{{1, 1, 700, 1, 700}, {}, 8000};
  RecordedTimes times = corrected({drafts, last});
  EXPECT_NEAR(times.batch_us(checks), 12'000, 1e-6);
  EXPECT_NEAR(times.batch_us(decodes(1, 700)), 8000, 1e-6);
  CounterSet counters;
  times.add_counters(counters);
  EXPECT_TRUE(counters.empty());
}

TEST_F(Corrected, StepsFarFromTheModelAreCounted) {
  const Batch decode = decodes(16, 500);
  CounterSet counters;
  corrected({recorded(decode, 5 * model_us(decode))}).add_counters(counters);
  EXPECT_EQ(counters.count("recorded_steps_far_from_model"), 1U);
}

TEST_F(Corrected, StepsOfAKindThatWasNotRecordedAreCounted) {
  const Batch decode = decodes(16, 500), chunk = prompt(1024, 0);
  RecordedTimes times = corrected({recorded(decode, 1.25 * model_us(decode))});
  EXPECT_NEAR(times.batch_us(chunk) / model_us(chunk), 1.25, 1e-9);
  CounterSet counters;
  times.add_counters(counters);
  EXPECT_EQ(counters.count("other_kind_of_recorded_steps"), 1U);
}

// Steps of an engine, and their file; conformance/python/test_steps.py has those of a trace.

using testing::HasSubstr;

TEST(RecordedSteps, WithSumsThatNoSequencesHaveCannotBe) {
  EXPECT_FALSE(can_be({1, 512, 512, 512, 512})) << "one prompt of 512 has 512^2";
  EXPECT_FALSE(can_be({2, 8, 8, 31, 31})) << "two of 4 have 32";
  EXPECT_TRUE(can_be({2, 8, 8, 32, 32}));
  EXPECT_TRUE(can_be({2, 8, 8, 50, 50})) << "7 and 1";
  EXPECT_FALSE(can_be({2, 8, 8, 51, 51}));
}

Json sums_of(const StepSums& sums) {
  return {{"sequences", sums.sequences}, {"tokens", sums.tokens},     {"keys", sums.keys},
          {"squares", sums.squares},     {"products", sums.products}};
}

/// A file of this step, or of none.
CheckedResult<RecordedSteps> read_back(const std::vector<RecordedStep>& steps) {
  Json list = Json::array();
  for (const RecordedStep& step : steps) {
    list.push_back({{"prompts", sums_of(step.prompts)},
                    {"singles", sums_of(step.singles)},
                    {"kernels_us", step.kernels_us}});
  }
  const Json file{{"format", "bubblesim.steps/1"}, {"gpu", "NVIDIA H200"},
                  {"source", "rank0.json"}, {"steps", std::move(list)}};
  return read_steps_file(TempFolder().write("steps.json", file.dump()));
}

TEST(StepsFile, IsReadAsItIs) {
  const RecordedStep step{{2, 5, 10, 13, 28}, {1, 1, 10, 1, 10}, 812.25};
  const auto read = read_back({step});
  ASSERT_TRUE(read) << read.error().front().text();
  EXPECT_EQ(read->steps, std::vector{step});
  EXPECT_EQ(read->gpu, "NVIDIA H200");
  EXPECT_EQ(read->source, "rank0.json");
}

TEST(StepsFile, SaysWhatIsWrong) {
  const auto fault_of = [](const std::vector<RecordedStep>& steps) {
    return read_back(steps).error().front().text();
  };
  EXPECT_THAT(fault_of({}), HasSubstr("is empty"));
  EXPECT_THAT(fault_of({{{2, 5, 4, 13, 28}, {}, 1}}), HasSubstr("sums that no sequences have"));
  EXPECT_THAT(fault_of({{{0.4, 1, 1, 1, 1}, {}, 1}}), HasSubstr("sums that no sequences have"));
  EXPECT_THAT(fault_of({{{}, {}, 1}}), HasSubstr("has no tokens"));
  EXPECT_FALSE(read_steps_file(TempFolder().write("f", R"({"format": "bubblesim.layers/1"})")));
}

}  // namespace
}  // namespace bubblesim::step_cost
