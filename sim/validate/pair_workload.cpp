#include "sim/validate/pair_workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/random.hpp"
#include "sim/model/efficiency.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::uint32_t kMostCount = 1u << 20;
constexpr int kMostNested = 4;

constexpr std::array<Choice<ModelPass>, 3> kPasses{{{"training", ModelPass::kTraining},
                                                    {"forward", ModelPass::kForward},
                                                    {"decode", ModelPass::kDecode}}};
constexpr std::array<Choice<model::Recompute>, 2> kRecomputes{
    {{"none", model::Recompute::kNone}, {"full", model::Recompute::kFull}}};
constexpr std::array<Choice<Convolutions>, 2> kConvolutions{
    {{"batched", Convolutions::kBatched}, {"each_sample", Convolutions::kEachSample}}};
constexpr std::array<Choice<model::KernelKind>, 7> kKinds{
    {{"gemm", model::KernelKind::kGemm},
     {"convolution", model::KernelKind::kConvolution},
     {"elementwise", model::KernelKind::kElementwise},
     {"normalisation", model::KernelKind::kNormalisation},
     {"softmax", model::KernelKind::kSoftmax},
     {"embedding", model::KernelKind::kEmbedding},
     {"optimizer", model::KernelKind::kOptimizer}}};
constexpr std::array<Choice<WorkloadRole>, 2> kRoles{
    {{"training", WorkloadRole::kTraining}, {"inference", WorkloadRole::kInference}}};

struct Defaults {
  model::Precision precision = model::Precision::kFp16;
};

KernelLine::Given read_given(ObjectReader& object) {
  KernelLine::Given out;
  if (object.has("time")) out.time = object.duration("time", {Duration{1}});
  out.launch.grid[0] = object.integer<std::uint32_t>("blocks", {1, 1u << 31});
  out.launch.block[0] = object.integer<std::uint32_t>("threads", {1, 1024}, 256);
  out.launch.registers_per_thread = object.integer<std::uint16_t>("registers", {0, 255}, 32);
  const Bytes shared = object.bytes("shared_memory", {Bytes{0}, Bytes{1u << 20}}, Bytes{0});
  out.launch.shared_memory_bytes = static_cast<std::uint32_t>(shared.value);
  out.memory_bound = object.choice("bound", std::array<Choice<bool>, 2>{
                                                {{"compute", false}, {"memory", true}}},
                                   false);
  return out;
}

KernelLine read_kernel(ObjectReader& object, const Defaults& defaults) {
  KernelLine out;
  out.work.name = object.text("name");
  out.work.kind = object.choice("kind", kKinds, model::KernelKind::kElementwise);
  out.work.precision = object.choice("precision", model::kWidePrecisionNames, defaults.precision);
  out.count = object.integer<std::uint32_t>("count", {1, kMostCount}, 1);
  if (out.work.kind == model::KernelKind::kGemm ||
      out.work.kind == model::KernelKind::kConvolution) {
    const Range<std::uint64_t> sizes{1, 1ULL << 32U};
    const model::GemmShape shape{object.integer<std::uint64_t>("m", sizes),
                                 object.integer<std::uint64_t>("n", sizes),
                                 object.integer<std::uint64_t>("k", sizes),
                                 object.integer<std::uint64_t>("batch", sizes, 1)};
    const model::KernelKind kind = out.work.kind;
    out.work = model::gemm_kernel(out.work.name, shape, out.work.precision);
    out.work.kind = kind;
    out.work.bytes = object.number("bytes", {0, 1e13}, out.work.bytes);
  } else {
    out.work.bytes = object.number("bytes", {0, 1e13}, 0.0);
    const double passed = out.work.bytes / (2 * model::bytes_of(out.work.precision));
    out.work.elements = std::max(1.0, object.number("elements", {0, 1e13}, passed));
    out.work.flops = out.work.elements;
  }
  if (object.has("time") || object.has("blocks")) out.given = read_given(object);
  return out;
}

ModelStep read_model_step(ObjectReader& object, const Defaults& defaults) {
  return {.model = object.text("model"),
          .pass = object.choice("pass", kPasses, ModelPass::kTraining),
          .batch = object.integer<std::uint32_t>("batch", {0, kMostCount}, 1),
          .sequence = object.integer<std::uint64_t>("sequence", {0, 1ULL << 24U}, 0),
          .precision = object.choice("precision", model::kWidePrecisionNames, defaults.precision),
          .recompute = object.choice("recompute", kRecomputes, model::Recompute::kNone),
          .convolutions = object.choice("convolutions", kConvolutions, Convolutions::kBatched)};
}

// Kernels that pass over parameters and states together.
KernelStep read_optimizer(ObjectReader object) {
  const double parameters = object.number("parameters", {1, 1e13});
  const double bytes_each = object.number("bytes_each", {0, 1e6});
  KernelLine line;
  line.count = object.integer<std::uint32_t>("kernels", {1, kMostCount});
  const auto passes = object.integer<std::uint32_t>("passes", {1, kMostCount});
  line.work.name = "optimizer";
  line.work.kind = model::KernelKind::kOptimizer;
  line.work.precision = model::Precision::kFp32;
  line.work.bytes = parameters * bytes_each / line.count;
  line.work.elements = std::max(1.0, parameters * passes / line.count);
  line.work.flops = line.work.elements;
  return {{line}, false};
}

std::vector<WorkloadStep> read_steps(ObjectReader& parent, const Defaults& defaults, int depth) {
  std::vector<WorkloadStep> out;
  for (ObjectReader& object : parent.children("steps")) {
    if (object.has("host")) {
      out.emplace_back(HostStep{object.duration("host"),
                                object.duration("each_sample", {Duration{0}}, Duration{0})});
    } else if (object.has("copy")) {
      out.emplace_back(CopyStep{object.number("copy", {0, 1e13}),
                                object.number("each_sample", {0, 1e13}, 0.0)});
    } else if (object.has("sync")) {
      if (object.flag("sync")) out.emplace_back(SyncStep{});
    } else if (object.has("model")) {
      out.emplace_back(read_model_step(object, defaults));
    } else if (object.has("kernels")) {
      KernelStep step;
      for (ObjectReader& entry : object.children("kernels")) {
        step.kernels.push_back(read_kernel(entry, defaults));
      }
      step.each_sample = object.flag("each_sample", false);
      out.emplace_back(std::move(step));
    } else if (object.has("optimizer")) {
      out.emplace_back(read_optimizer(object.child("optimizer")));
    } else if (object.has("repeat")) {
      RepeatStep step;
      step.times = object.integer<std::uint32_t>("repeat", {1, kMostCount});
      if (depth >= kMostNested) {
        object.fault("repeat", "repeated steps inside each other more than 4 deep");
      } else {
        step.steps = read_steps(object, defaults, depth + 1);
      }
      out.emplace_back(std::move(step));
    } else {
      object.fault("", "a step without what it does; expected one of host, copy, sync, model, "
                       "kernels, optimizer, repeat");
    }
  }
  return out;
}

PairWorkload read_pair(ObjectReader& root) {
  PairWorkload out;
  out.names = root.texts("names");
  out.role = root.choice("role", kRoles);
  out.source = root.text("source");
  out.launch_gap = root.duration("launch_gap", {Duration{0}, Duration{1000000000}});
  out.launch_call = root.duration("launch_call", {Duration{0}, Duration{1000000000}});
  out.batch = root.integer<std::uint32_t>("batch", {1, kMostCount}, 0U);
  out.kernel_factor = root.number("kernel_factor", {0.01, 100}, 1.0);
  Defaults defaults;
  defaults.precision = root.choice("precision", model::kWidePrecisionNames);
  out.steps = read_steps(root, defaults, 0);
  if (out.steps.empty()) root.fault("steps", "no step; expected at least one");
  root.finish();
  return out;
}

void add_batches(const std::vector<WorkloadStep>& steps, std::vector<std::uint32_t>& out) {
  for (const WorkloadStep& step : steps) {
    if (const auto* model = std::get_if<ModelStep>(&step)) add_once(out, model->batch);
    if (const auto* repeat = std::get_if<RepeatStep>(&step)) add_batches(repeat->steps, out);
  }
}

}  // namespace

CheckedResult<PairWorkload> parse_workload(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  BUBBLESIM_ASSIGN_OR_RETURN(PairWorkload out, read_whole(document, read_pair));
  out.id = std::move(label);
  return out;
}

CheckedResult<std::vector<PairWorkload>> read_workloads(const std::string& folder) {
  return read_data_folder(folder, "workload", [](const std::string& path) {
    return read_whole_file(path, [&](ObjectReader& root) {
      PairWorkload workload = read_pair(root);
      workload.id = data_file_id(path);
      return workload;
    });
  });
}

bool is_resizable(const std::vector<WorkloadStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const WorkloadStep& step) {
    if (const auto* model = std::get_if<ModelStep>(&step)) return model->batch == 0;
    if (const auto* kernels = std::get_if<KernelStep>(&step)) return kernels->each_sample;
    const auto* repeat = std::get_if<RepeatStep>(&step);
    return repeat != nullptr && is_resizable(repeat->steps);
  });
}

std::vector<std::uint32_t> model_batches(const std::vector<WorkloadStep>& steps) {
  std::vector<std::uint32_t> out;
  add_batches(steps, out);
  return out;
}

namespace {

// Arrivals within one span have one instant, random within what of the span lies in the run.
void gather(std::vector<SimTime>& arrivals, Duration span, Duration length, RandomStream& random) {
  std::int64_t gathered = -1;
  SimTime together{};
  for (SimTime& at : arrivals) {
    const std::int64_t index = (at - kSimStart) / span;
    if (index != gathered) {
      const Duration begin = index * span;
      together = kSimStart + begin + scale(std::min(span, length - begin), random.uniform());
      gathered = index;
    }
    at = together;
  }
}

}  // namespace

std::vector<SimTime> pair_arrivals(const ArrivalSetting& setting, Duration solo, Duration length) {
  RandomStream random(setting.seed, "arrivals of a pair");
  const double expected = setting.load * to_seconds(length) / to_seconds(solo);
  const auto count = static_cast<std::uint64_t>(std::llround(expected));
  std::vector<SimTime> out;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double at = (static_cast<double>(i) + random.uniform()) / static_cast<double>(count);
    out.push_back(kSimStart + scale(length, at));
  }
  if (setting.burst > Duration::zero()) gather(out, setting.burst, length, random);
  return out;
}

}  // namespace bubblesim::validate
