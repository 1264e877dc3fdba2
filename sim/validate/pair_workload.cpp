#include "sim/validate/pair_workload.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/model/precision_names.hpp"
#include "sim/model/work_items.hpp"
#include "sim/validate/job_name.hpp"

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
  ModelStep out;
  out.model = object.text("model");
  out.pass = object.choice("pass", kPasses, ModelPass::kTraining);
  out.batch = object.integer<std::uint32_t>("batch", {0, kMostCount}, 1);
  out.sequence = object.integer<std::uint64_t>("sequence", {0, 1ULL << 24U}, 0);
  out.precision = object.choice("precision", model::kWidePrecisionNames, defaults.precision);
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
  defaults.precision = root.choice("precision", model::kWidePrecisionNames);
  out.steps = read_steps(root, defaults, 0);
  if (out.steps.empty()) root.fault("steps", "no step; expected at least one");
  root.finish();
  return out;
}

// Long enough that it is found in a sentence only where it is meant.
bool is_phrase(std::string_view name) { return std::count(name.begin(), name.end(), ' ') >= 1; }

// Larger batches are no job's; each sample of a convolution may be a kernel of its own.
constexpr std::uint32_t kMostResized = 4096;

// Whether a table's batch size reaches what a GPU computes.
bool is_resizable(const std::vector<WorkloadStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const WorkloadStep& step) {
    if (const auto* model = std::get_if<ModelStep>(&step)) return model->batch == 0;
    if (const auto* kernels = std::get_if<KernelStep>(&step)) return kernels->each_sample;
    const auto* repeat = std::get_if<RepeatStep>(&step);
    return repeat != nullptr && is_resizable(repeat->steps);
  });
}

// The different batch sizes of its models.
void add_batches(const std::vector<WorkloadStep>& steps, std::vector<std::uint32_t>& out) {
  for (const WorkloadStep& step : steps) {
    if (const auto* model = std::get_if<ModelStep>(&step)) add_once(out, model->batch);
    if (const auto* repeat = std::get_if<RepeatStep>(&step)) add_batches(repeat->steps, out);
  }
}

// Its file's, else that of its names, else of its models; 0: none says one.
std::uint32_t own_batch(const PairWorkload& workload) {
  if (workload.batch > 0) return workload.batch;
  for (const std::string& name : workload.names) {
    const auto batches = batches_in(name);
    if (batches.size() == 1) return batches.front();
  }
  std::vector<std::uint32_t> batches;
  add_batches(workload.steps, batches);
  return batches.size() == 1 ? batches.front() : 0;
}

// A job as a table calls it.
struct Asked {
  std::string name;
  std::vector<std::uint32_t> batches;
  std::string words;      ///< as job_words
  std::string batchless;  ///< without its batch sizes
};

// How a workload is meant by a name, the better the greater.
enum class MeantBy : std::uint8_t { kNothing, kNoBatch, kOtherBatch, kName };

struct Meaning {
  MeantBy match = MeantBy::kNothing;
  std::size_t letters = 0;  ///< of the name that it is called by; kJustSo if by no other word
  FoundWorkload found;

  [[nodiscard]] bool is_better_than(const Meaning& other) const {
    // One that is refused is only for want of another.
    return std::tuple(found.refused.empty(), match, letters) >
           std::tuple(other.found.refused.empty(), other.match, other.letters);
  }
};

constexpr std::size_t kJustSo = std::numeric_limits<std::size_t>::max();

// How well `words` call a job `known`: kJustSo, or by the letters of `known` if that is a phrase in
// them; 0: not at all.
std::size_t fit_of(const std::string& known, std::string_view words) {
  const std::string letters = letters_of(known);
  if (letters == letters_of(words)) return kJustSo;
  return is_phrase(known) && is_within(known, words) ? letters.size() : 0;
}

// By a name without a batch size: in place of its own, the workload runs at that asked for.
FoundWorkload found_without_batch(const PairWorkload& workload, const Asked& asked) {
  if (asked.batches.size() > 1) {
    return {&workload, 0, asked.name + " names two batch sizes; expected one"};
  }
  if (asked.batches.empty()) {
    if (!has_unread_batch(asked.name)) return {&workload, 0, {}};
    return {&workload, 0, "no batch size is read in " + asked.name +
                              "; expected one as in \"batch 16\""};
  }
  const std::uint32_t batch = asked.batches.front();
  std::string refused = batch > kMostResized
                            ? asked.name + ": expected a batch size from 1 to " +
                                  std::to_string(kMostResized)
                            : refuse_batch(workload, batch);
  return {&workload, batch == own_batch(workload) ? 0 : batch, std::move(refused)};
}

Meaning meaning_of(const PairWorkload& workload, const std::string& name, const Asked& asked) {
  const std::string known = job_words(name);
  const auto batches = batches_in(name);
  const auto as_named = fit_of(known, asked.words);
  if (as_named == kJustSo || (as_named > 0 && !batches.empty())) {
    return {MeantBy::kName, as_named, {&workload, 0, {}}};
  }
  if (batches.empty()) {
    const auto fit = fit_of(known, asked.batchless);
    if (fit == 0) return {};
    FoundWorkload found = found_without_batch(workload, asked);
    return {found.batch == 0 ? MeantBy::kName : MeantBy::kNoBatch, fit, std::move(found)};
  }
  const bool can_differ = batches.size() == 1 && asked.batches.size() == 1 &&
                          asked.batches.front() <= kMostResized && is_resizable(workload.steps);
  if (!can_differ) return {};
  const auto fit = fit_of(known, at_batch(asked.name, batches.front()));
  if (fit == 0) return {};
  return {MeantBy::kOtherBatch, fit, {&workload, asked.batches.front(), {}}};
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
      if (known.insert({workload.role, job_letters(name)}).second) continue;
      errors.push_back({folder + "/" + workload.id + ".json", "/names",
                        "\"" + name + "\" is the name of another file's workload"});
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

std::string refuse_batch(const PairWorkload& workload, std::uint32_t batch) {
  const std::uint32_t own = own_batch(workload);
  if (own == batch || is_resizable(workload.steps)) return {};
  return workload.id + " does not run at batch " + std::to_string(batch) +
         ": its steps are those of " +
         (own > 0 ? "batch " + std::to_string(own) : "one batch size, which it does not say");
}

Result<FoundWorkload> find_workload(const std::vector<PairWorkload>& all, WorkloadRole role,
                                    std::string_view name) {
  const Asked asked{std::string(name), batches_in(name), job_words(name), without_batch(name)};
  std::vector<std::string> names;
  Meaning best;
  for (const PairWorkload& workload : all) {
    if (workload.role != role) continue;
    names.insert(names.end(), workload.names.begin(), workload.names.end());
    for (const std::string& known : workload.names) {
      Meaning meaning = meaning_of(workload, known, asked);
      if (meaning.letters == 0) continue;
      if (best.letters == 0 || meaning.is_better_than(best)) best = std::move(meaning);
    }
  }
  if (best.letters > 0) return best.found;
  const std::string kind =
      std::string(role == WorkloadRole::kTraining ? "training" : "inference") + " workload";
  return fail(unknown_name_message(kind, name, std::span<const std::string>(names)));
}

}  // namespace bubblesim::validate
