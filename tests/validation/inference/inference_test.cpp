// Whole requests against measured ones: NeuSight's label folder for the H100, whose files are named
// MODEL-inf-SEQUENCE-BATCH.json and hold the mean time of a Hugging Face module's forward pass in
// ms (e2e_latency): eager PyTorch, FP32, unfused attention, logits of every token, input on the
// device already. Shapes of the models are those that the operator tables beside them list.
//
// Simulated times are short, most of all of the GPTs and OPT: Hugging Face's modules launch more
// passes over memory than the modelled layers, which scale, mask and soften scores in one kernel
// and have one for the activation. GPT-2 divides and masks the scores apart and computes its GELU
// by eight kernels, OPT adds its mask and clamps: a sixth of GPT-2-large's time by its operator
// table.
//
// None of these times was fitted to; the kernels' efficiencies were fitted to other tables of the
// same GPU (scripts/fit kernels). Limits are what is reached, with a little room.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json_reader.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/software_spec.hpp"
#include "sim/synth/synthesise.hpp"

namespace bubblesim::synth {
namespace {

const std::string kConfigs = BUBBLESIM_SOURCE_DIR "/configs";
const std::string kFolder = BUBBLESIM_DATA_DIR
    "/sitar-lab+NeuSight/scripts/asplos/label/NVIDIA_H100_80GB_HBM3/";

struct Row {
  std::string file;
  model::ModelSpec model;
  std::uint64_t sequence = 0;
  std::uint32_t batch = 0;
};

model::ModelSpec bert_large() {
  model::ModelSpec spec = model::gpt(1024, 24, 16, 30522, 512);
  auto& network = std::get<model::TransformerSpec>(spec.network);
  network.mask = model::AttentionMask::kBidirectional;
  network.norm_place = model::NormPlace::kAfter;
  network.head = model::Head::kClassifier;
  network.classes = 2;
  network.token_types = 2;
  network.embedding_norm = true;
  return spec;
}

std::vector<Row> rows() {
  const model::ModelSpec gpt2 = model::gpt(1280, 36, 20, 50257, 1024);
  const model::ModelSpec xl = model::gpt(3072, 24, 24, 50257, 2048);
  const model::ModelSpec gpt27 = model::gpt(2560, 32, 32, 50257, 2048);
  const model::ModelSpec opt = model::gpt(2048, 24, 32, 50272, 2048);
  return {{"bert_large-inf-512-8", bert_large(), 512, 8},
          {"bert_large-inf-512-16", bert_large(), 512, 16},
          {"gpt2_large-inf-1024-4", gpt2, 1024, 4},
          {"gpt2_large-inf-1024-8", gpt2, 1024, 8},
          {"gpt3_xl-inf-2048-2", xl, 2048, 2},
          {"gpt3_xl-inf-2048-8", xl, 2048, 8},
          {"gpt3_27-inf-2048-2", gpt27, 2048, 2},
          {"gpt3_27-inf-2048-8", gpt27, 2048, 8},
          {"opt_13-inf-2048-2", opt, 2048, 2},
          {"opt_13-inf-2048-8", opt, 2048, 8}};
}

double measured_ms(const std::string& file) {
  const auto document = JsonDocument::load_file(kFolder + file + ".json");
  if (!document) return 0;
  Errors errors;
  ObjectReader root = document->root(errors);
  return root.number("e2e_latency", {0, 1e9});
}

double simulated_ms(const Row& row) {
  InferenceRequest request;
  request.model = row.model;
  request.batch = row.batch;
  request.shape = OnePass{row.sequence, model::AttentionKernels::kUnfused};
  request.precision = model::Precision::kFp32;
  const auto gpu = hardware::find_gpu_spec("h100", kConfigs + "/devices");
  const auto efficiency = model::find_efficiency("h100", kConfigs + "/efficiency");
  const auto software = find_software("pytorch", kConfigs + "/software");
  if (!gpu || !efficiency || !software) return 0;
  request.gpu = *gpu;
  request.efficiency = *efficiency;
  request.software = *software;
  request.software.slowdown = {};  // of training frameworks; these kernels are the fitted ones
  auto made = inference_program(request);
  if (!made) {
    ADD_FAILURE() << row.file << ": " << made.error().text();
    return 0;
  }
  workload::JobProgram job;
  job.ranks.push_back(std::move(made->program));
  const auto alone = time_alone(job, request.gpu);
  return alone ? to_seconds(alone->time) * 1e3 : 0;
}

TEST(InferenceErrorsH100, stay_where_they_are) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no measured requests";
  double sum = 0;
  double worst = 0;
  std::printf("%-24s %12s %12s %8s\n", "request", "measured ms", "simulated", "error");
  for (const Row& row : rows()) {
    const double measured = measured_ms(row.file);
    const double simulated = simulated_ms(row);
    ASSERT_GT(measured, 0) << row.file;
    const double error = simulated / measured - 1;
    std::printf("%-24s %12.2f %12.2f %+7.1f%%\n", row.file.c_str(), measured, simulated,
                100 * error);
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
  }
  const double mean = sum / static_cast<double>(rows().size());
  std::printf("mean absolute error %.1f%%, worst %.1f%%\n", 100 * mean, 100 * worst);
  EXPECT_LT(mean, 0.13);
  EXPECT_LT(worst, 0.23);
}

}  // namespace
}  // namespace bubblesim::synth
