#include "sim/validate/judges.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/model/model_file.hpp"
#include "sim/run/parallel.hpp"
#include "sim/validate/predict.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::uint32_t kStages = 16;
constexpr std::uint32_t kTensor = 8;
constexpr std::uint64_t kGlobalBatch = 512;  // 8 replicas of 64 micro-batches of 1
constexpr const char* kCluster = "v100-16k";
constexpr const char* kSoftware = "megatron-deepspeed";
constexpr const char* kModel = "pipefill-40b";

struct JobScale {
  std::uint32_t gpus = 0;
  std::optional<double> days;  // published
};

constexpr std::array<JobScale, 5> kScales{{
    {1024, 82}, {2048, std::nullopt}, {4096, 34}, {8192, 26}, {16384, std::nullopt}}};

synth::JobRequest request_of(const model::ModelSpec& model, const Testbed& machine,
                             std::uint32_t gpus) {
  synth::JobRequest out = request_on(machine);
  out.model = model;
  out.plan.name = fmt::format("PipeFill, {} GPUs", gpus);
  out.plan.tensor = kTensor;
  out.plan.pipeline = kStages;
  out.plan.data = gpus / (kStages * kTensor);
  out.plan.global_batch = kGlobalBatch;
  out.plan.precision = model::Precision::kFp16;
  out.plan.optimizer.weights = model::Precision::kFp16;
  out.plan.optimizer.gradients = model::GradientStore::kWrite;
  out.plan.recompute = model::Recompute::kFull;
  out.plan.attention = model::AttentionKernels::kUnfused;
  out.plan.gradients.sync = synth::GradientSync::kAfterBackward;
  out.plan.software = kSoftware;
  return out;
}

// What a stage does not spend on micro-batches. A micro-batch takes `slot` seconds.
std::string bubble_note(double micro_batches, double seconds, double slot) {
  const double own = (kStages - 1) / (micro_batches + kStages - 1);
  return fmt::format("stages idle {:.1f} % of {:.2f} s; fill and drain alone {:.1f} %",
                     100 * (1 - micro_batches * slot / seconds), seconds, 100 * own);
}

double micro_batches_of(const JobScale& scale) {
  return static_cast<double>(kGlobalBatch) / (scale.gpus / (kStages * kTensor));
}

ReportRow row_of(const JobScale& scale, double seconds, double first, double slot) {
  ReportRow out;
  out.table = "pipefill";
  out.label = fmt::format("40B on {} GPUs, {:.0f} micro-batches, 82 days on 1024", scale.gpus,
                          micro_batches_of(scale));
  out.unit = "days";
  out.simulated = *kScales.front().days * seconds / first;
  out.measured = scale.days.value_or(0);
  out.note = bubble_note(micro_batches_of(scale), seconds, slot);
  if (scale.days && scale.gpus != kScales.front().gpus) return out;
  out.outcome = RowOutcome::kStated;
  out.note = fmt::format("{:.1f} days, {}; {}", out.simulated,
                         scale.days ? "to which the others are scaled" : "nothing published",
                         out.note);
  return out;
}

}  // namespace

CheckedResult<std::vector<ReportRow>> judge_pipefill(const std::string& configs,
                                                     std::size_t threads) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Testbed machine, find_machine(configs, kCluster, kSoftware));
  BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelSpec model,
                             model::find_model(kModel, configs + "/models"));
  std::vector<CheckedResult<double>> seconds(kScales.size(), 0.0);
  run::for_each_parallel(kScales.size(), threads, [&](std::size_t i) {
    auto plan = synth::plan_job(request_of(model, machine, kScales[i].gpus));
    if (plan) seconds[i] = seconds_of(*plan);
    else seconds[i] = tl::make_unexpected(std::move(plan).error());
  });
  for (auto& time : seconds) {
    if (!time) return tl::make_unexpected(std::move(time).error());
  }
  // 48 micro-batches fewer from 1K to 4K GPUs.
  const double slot = (*seconds[0] - *seconds[2]) /
                      (micro_batches_of(kScales[0]) - micro_batches_of(kScales[2]));
  std::vector<ReportRow> out;
  for (std::size_t i = 0; i < kScales.size(); ++i) {
    out.push_back(row_of(kScales[i], *seconds[i], *seconds[0], slot));
  }
  return out;
}

}  // namespace bubblesim::validate
