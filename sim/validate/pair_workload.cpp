#include "sim/validate/pair_workload.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/model/work_items.hpp"
#include "sim/validate/job_name.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::uint32_t kMostCount = 1u << 20;
constexpr int kMostNested = 4;

constexpr std::array<Choice<model::Precision>, 4> kPrecisions{
    {{"fp32", model::Precision::kFp32},
     {"tf32", model::Precision::kTf32},
     {"fp16", model::Precision::kFp16},
     {"bf16", model::Precision::kBf16}}};
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
  out.work.precision = object.choice("precision", kPrecisions, defaults.precision);
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
  ModelStep out;
  out.model = object.text("model");
  out.pass = object.choice("pass", kPasses, ModelPass::kTraining);
  out.batch = object.integer<std::uint32_t>("batch", {0, kMostCount}, 1);
  out.sequence = object.integer<std::uint64_t>("sequence", {0, 1ULL << 24U}, 0);
  out.precision = object.choice("precision", kPrecisions, defaults.precision);
  out.recompute = object.choice("recompute", kRecomputes, model::Recompute::kNone);
  out.convolutions = object.choice("convolutions", kConvolutions, Convolutions::kBatched);
  return out;
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

PairWorkload read(ObjectReader& root) {
  PairWorkload out;
  out.names = root.texts("names");
  out.role = root.choice("role", kRoles);
  out.source = root.text("source");
  out.launch_gap = root.duration("launch_gap", {Duration{0}, Duration{1000000000}});
  out.launch_call = root.duration("launch_call", {Duration{0}, Duration{1000000000}});
  out.batch = root.integer<std::uint32_t>("batch", {1, kMostCount}, 0U);
  out.kernel_factor = root.number("kernel_factor", {0.01, 100}, 1.0);
  Defaults defaults;
  defaults.precision = root.choice("precision", kPrecisions);
  out.steps = read_steps(root, defaults, 0);
  if (out.steps.empty()) root.fault("steps", "no step; expected at least one");
  root.finish();
  return out;
}

// Long enough that it is found in a sentence only where it is meant.
bool is_phrase(std::string_view name) { return std::count(name.begin(), name.end(), ' ') >= 1; }

// How well a workload is meant by `name`: most if it is called so, else by the letters of its
// longest name of several words that stands in it; 0: not at all.
std::size_t fit_of(const PairWorkload& workload, std::string_view name) {
  std::size_t out = 0;
  for (const std::string& known : workload.names) {
    const std::string letters = letters_of(known);
    if (letters == letters_of(name)) return std::numeric_limits<std::size_t>::max();
    if (is_phrase(known) && is_within(known, name)) out = std::max(out, letters.size());
  }
  return out;
}

}  // namespace

CheckedResult<PairWorkload> parse_workload(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  BUBBLESIM_ASSIGN_OR_RETURN(PairWorkload out, read_whole(document, read));
  out.id = std::move(label);
  return out;
}

CheckedResult<std::vector<PairWorkload>> read_workloads(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      std::vector<PairWorkload> out,
      read_data_folder(folder, "workload", [](const std::string& path) {
        return read_whole_file(path, [&](ObjectReader& root) {
          PairWorkload workload = read(root);
          workload.id = data_file_id(path);
          return workload;
        });
      }));
  Errors errors;
  std::set<std::pair<WorkloadRole, std::string>> known;
  for (const PairWorkload& workload : out) {
    for (const std::string& name : workload.names) {
      if (known.insert({workload.role, letters_of(name)}).second) continue;
      errors.push_back({folder + "/" + workload.id + ".json", "/names",
                        "\"" + name + "\" is the name of another file's workload"});
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

// Larger batches are no job's; each sample of a convolution may be a kernel of its own.
constexpr std::uint32_t kMostResized = 4096;

Result<FoundWorkload> find_workload(const std::vector<PairWorkload>& all, WorkloadRole role,
                                    std::string_view name) {
  std::vector<std::string> names;
  const auto batches = batches_in(name);
  const bool sized = batches.size() == 1;
  const std::string words = sized ? at_batch(name, batches.front()) : std::string(name);
  FoundWorkload found, resized;
  std::size_t most = 0, most_resized = 0;
  for (const PairWorkload& workload : all) {
    if (workload.role != role) continue;
    names.insert(names.end(), workload.names.begin(), workload.names.end());
    if (const auto fit = fit_of(workload, words); fit > most) {
      most = fit;
      found = {&workload, 0};
    }
    if (!sized || batches.front() > kMostResized || workload.batch == 0) continue;
    if (const auto fit = fit_of(workload, at_batch(name, workload.batch)); fit > most_resized) {
      most_resized = fit;
      resized = {&workload, batches.front()};
    }
  }
  if (most > 0) return found;
  if (most_resized > 0) return resized;
  const std::string kind =
      std::string(role == WorkloadRole::kTraining ? "training" : "inference") + " workload";
  return fail(unknown_name_message(kind, name, std::span<const std::string>(names)));
}

}  // namespace bubblesim::validate
