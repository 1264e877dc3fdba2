// One element of "fillers".
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "sim/base/nearest.hpp"
#include "sim/model/efficiency.hpp"
#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run::config_detail {
namespace {

using observe::FillerMode;

constexpr std::uint32_t kMostGpus = 1U << 20;
constexpr std::uint32_t kMostRequests = 1U << 20;
constexpr Range<double> kRates{1e-6, 1e9};

constexpr std::uint32_t kMostJobs = 100'000;

constexpr std::array<Choice<FillerMode>, 3> kFillerModes{
    {{"offline", FillerMode::kOffline}, {"online", FillerMode::kOnline},
     {"jobs", FillerMode::kJobs}}};

enum class Process : std::uint8_t { kPoisson, kGamma, kFile };
constexpr std::array<Choice<Process>, 3> kProcesses{
    {{"poisson", Process::kPoisson}, {"gamma", Process::kGamma}, {"file", Process::kFile}}};

FillerProgram read_program(const ReadContext& context, ObjectReader program) {
  program.one_of({"trace", "kernel_table", "model", "train"});
  if (program.has("trace")) {
    const double host_speed = program.number("host_speed", kHostSpeed, 1);
    return TraceProgram{read_path(context, program, "trace"), host_speed};
  }
  if (program.has("model")) return read_model_program(context, program);
  if (program.has("train")) return TrainProgram{read_synth(context, program.child("train"))};
  if (!program.has("kernel_table")) return TraceProgram{};
  return KernelTableProgram{.path = read_path(context, program, "kernel_table"),
                            .launch_gap = program.duration("launch_gap", kSpan, Duration::zero())};
}

workload::ArrivalSpec read_arrivals(const ReadContext& context, ObjectReader arrivals) {
  switch (arrivals.choice("process", kProcesses)) {
    case Process::kPoisson:
      return workload::PoissonArrivals{arrivals.number("rate_per_s", kRates)};
    case Process::kGamma: {
      const double rate = arrivals.number("rate_per_s", kRates);
      return workload::GammaArrivals{rate, arrivals.number("cv", {0.01, 100})};
    }
    case Process::kFile: break;
  }
  return workload::FileArrivals{.path = read_path(context, arrivals, "path"),
                                .format = arrivals.choice("format", kFormats),
                                .speedup = arrivals.number("speedup", {1e-6, 1e6}, 1)};
}

/// "all", or a list of different numbers.
std::optional<std::vector<std::uint32_t>> read_gpus(ObjectReader& reader) {
  const JsonKind kind = reader.kind("gpus");
  if (kind == JsonKind::kAbsent) return std::nullopt;
  if (kind == JsonKind::kText) {
    (void)reader.choice("gpus", std::array<std::string_view, 1>{"all"});
    return std::nullopt;
  }
  if (kind != JsonKind::kList) {
    reader.fault("gpus", "found " + quote_found(reader.raw("gpus")) +
                             "; expected \"all\" or a list of GPU numbers");
    return std::nullopt;
  }
  auto gpus = reader.integers<std::uint32_t>("gpus", {0, kMostGpus - 1});
  if (reader.raw("gpus") == "[]") {
    reader.fault("gpus", "found an empty list; expected \"all\" or at least one GPU");
  }
  std::sort(gpus.begin(), gpus.end());
  if (const auto twice = std::adjacent_find(gpus.begin(), gpus.end()); twice != gpus.end()) {
    reader.fault("gpus", "found GPU " + std::to_string(*twice) + " twice; expected it once");
  }
  return gpus;
}

void read_online(const ReadContext& context, ObjectReader& reader, FillerConfig& filler) {
  for (const char* key : {"arrivals", "deadline", "max_wait"}) {
    if (!reader.has(key) || filler.mode == FillerMode::kOnline) continue;
    const std::string why = filler.mode == FillerMode::kJobs
                                ? "requests of fill jobs do not arrive"
                                : "an offline filler always has a next request";
    reader.fault(key, why + "; only online fillers have \"" + std::string(key) + "\"");
  }
  filler.batching.max_wait = reader.duration("max_wait", kSpan, Duration::zero());
  if (reader.has("deadline")) filler.deadline = reader.duration("deadline", kPositiveSpan);
  if (filler.mode == FillerMode::kOnline || reader.has("arrivals")) {
    filler.arrivals = read_arrivals(context, reader.child("arrivals"));
  }
}

FillJobConfig read_job(ObjectReader& reader) {
  FillJobConfig job;
  job.requests = reader.integer<std::uint32_t>("requests", {1, kMostRequests});
  job.submitted = reader.duration("submitted", kSpan, Duration::zero());
  if (reader.has("deadline")) job.deadline = reader.duration("deadline", kPositiveSpan);
  return job;
}

/// A list of jobs, or one that is submitted again and again.
std::vector<FillJobConfig> read_jobs(ObjectReader& reader) {
  std::vector<FillJobConfig> jobs;
  if (reader.kind("jobs") != JsonKind::kObject) {
    for (ObjectReader& job : reader.children("jobs")) jobs.push_back(read_job(job));
    if (reader.raw("jobs") == "[]") {
      reader.fault("jobs", "found an empty list; expected at least one job");
    }
    return jobs;
  }
  ObjectReader repeated = reader.child("jobs");
  FillJobConfig job = read_job(repeated);
  const auto count = repeated.integer<std::uint32_t>("count", {1, kMostJobs});
  const Duration interval = repeated.duration("every", kSpan, Duration::zero());
  if (interval > kLongestSpan / count) {
    repeated.fault("every", "the last job is submitted beyond a year; expected less");
    return {job};
  }
  for (std::uint32_t i = 0; i < count; ++i, job.submitted += interval) jobs.push_back(job);
  return jobs;
}

/// What says where and when it runs.
void read_placement(ObjectReader& reader, FillerConfig& filler) {
  const bool queue = filler.mode == FillerMode::kJobs;
  filler.gpus = read_gpus(reader);
  if (reader.has("instances")) {
    filler.instances = reader.integer<std::uint32_t>("instances", {1, kMostGpus});
    if (queue) reader.fault("instances", "fill jobs are placed one by one; expected no such key");
  }
  filler.sm_request = reader.number("sm_request", {0, 1}, 0);
  filler.sm_limit = reader.number("sm_limit", {0, 1}, 0);
  if (filler.sm_limit > 0 && filler.sm_limit < filler.sm_request) {
    reader.fault("sm_limit", "found less than \"sm_request\"; expected that or more");
  }
  if (queue) {
    filler.jobs = read_jobs(reader);
  } else if (reader.has("jobs")) {
    reader.fault("jobs", "only fillers of mode \"jobs\" have fill jobs; expected no such key");
  }
}

const synth::EngineNames* engine_of(const FillerConfig& filler) {
  const auto* made = std::get_if<synth::InferenceNames>(&filler.program);
  return made != nullptr && made->engine ? &*made->engine : nullptr;
}

/// The key that makes a server one over several GPUs; null: it is none.
const char* key_of_several_gpus(const synth::EngineSettings& settings) {
  if (settings.tensor > 1) return "tensor_parallel";
  return settings.members > 1 ? "data_parallel" : nullptr;
}

constexpr std::array<const char*, 4> kBatchingKeys{"requests_per_pass", "max_batch", "batch_cost",
                                                   "max_wait"};

/// The keys of batches of a filler whose requests join and leave between steps.
std::vector<std::string> unused_batching(ObjectReader& reader, const FillerConfig& filler) {
  const auto* made = std::get_if<synth::InferenceNames>(&filler.program);
  std::vector<std::string> unused;
  if (made == nullptr || made->batching != synth::BatchingMode::kContinuous) return unused;
  for (const char* key : kBatchingKeys) {
    if (reader.has(key)) unused.emplace_back(key);
  }
  return unused;
}

/// An engine's requests need lengths, and batches are its scheduler's business.
void check_engine(ObjectReader& reader, const FillerConfig& filler,
                  const synth::EngineNames& engine) {
  for (const char* key : kBatchingKeys) {
    if (!reader.has(key) || !filler.unused_batching.empty()) continue;
    reader.fault(key, "an engine forms its own batches; expected no such key");
  }
  if (engine.settings.prefill && filler.mode != FillerMode::kOnline) {
    reader.fault("program", "found \"prefill\" in \"engine\"; only online fillers compute prompts "
                            "and tokens on different GPUs");
  }
  if (const char* several = key_of_several_gpus(engine.settings)) {
    if (filler.mode == FillerMode::kJobs || filler.instances || engine.settings.prefill) {
      reader.fault("program", "found \"" + std::string(several) +
                                  "\" in \"engine\"; a server over several GPUs has no fill jobs, "
                                  "no \"instances\" and no \"prefill\"");
    }
  }
  const bool recorded = filler.arrivals && std::holds_alternative<workload::FileArrivals>(
                                               *filler.arrivals);
  if (!engine.requests.lengths && !recorded) {
    reader.fault("program", "found no \"requests\", and no file of arrivals that says how long "
                            "they are; expected either");
  }
}

/// Limits on what a user waits for.
std::optional<observe::ServiceLimits> read_limits(ObjectReader& reader, bool engine) {
  if (!reader.has("slo")) return std::nullopt;
  ObjectReader slo = reader.child("slo");
  if (!engine) {
    reader.fault("slo", "only a program with \"engine\" has tokens; expected no such key");
  }
  observe::ServiceLimits limits;
  if (slo.has("ttft")) limits.ttft = slo.duration("ttft", kPositiveSpan);
  if (slo.has("tpot")) limits.tpot = slo.duration("tpot", kPositiveSpan);
  if (slo.has("latency")) limits.latency = slo.duration("latency", kPositiveSpan);
  return limits;
}

}  // namespace

FillerConfig read_filler(const ReadContext& context, ObjectReader& reader) {
  FillerConfig filler;
  filler.name = read_name(reader, "name");
  filler.mode = reader.choice("mode", kFillerModes);
  filler.program = read_program(context, reader.child("program"));
  read_placement(reader, filler);
  const auto* made = std::get_if<synth::InferenceNames>(&filler.program);
  const std::uint32_t batch = made != nullptr && !made->engine ? made->batch : 1;
  filler.batching.requests_per_pass =
      reader.integer<std::uint32_t>("requests_per_pass", {1, kMostRequests}, batch);
  filler.batching.max_batch = reader.integer<std::uint32_t>("max_batch", {1, kMostRequests}, batch);
  filler.batching.batch_cost = reader.number("batch_cost", {0, 1}, 1);
  if (reader.has("memory")) filler.memory = reader.bytes("memory", kPositiveBytes);
  filler.jitter_cv = reader.number("jitter_cv", {0, 10}, 0);
  read_online(context, reader, filler);
  filler.unused_batching = unused_batching(reader, filler);
  const synth::EngineNames* engine = engine_of(filler);
  if (engine != nullptr) check_engine(reader, filler, *engine);
  filler.limits = read_limits(reader, engine != nullptr);
  return filler;
}

}  // namespace bubblesim::run::config_detail

namespace bubblesim::run {

std::uint32_t gpus_of_server(const FillerConfig& filler) {
  const auto* engine = config_detail::engine_of(filler);
  return engine == nullptr ? 1 : engine->settings.tensor * engine->settings.members;
}

std::optional<std::string> key_with_links(const FillerConfig& filler) {
  const auto* engine = config_detail::engine_of(filler);
  if (engine == nullptr) return std::nullopt;
  if (const char* key = config_detail::key_of_several_gpus(engine->settings)) return key;
  const bool apart = engine->settings.prefill.has_value();
  return apart && engine->settings.prefill->link.value == 0 ? std::optional<std::string>("prefill")
                                                            : std::nullopt;
}

policy::Role role_of(const FillerConfig& filler) {
  if (filler.mode == observe::FillerMode::kOnline) return policy::Role::kOnline;
  return std::holds_alternative<TrainProgram>(filler.program) ? policy::Role::kTraining
                                                              : policy::Role::kOffline;
}

}  // namespace bubblesim::run

namespace bubblesim::run::config_detail {
// "program" of a filler that is made from a model: one pass a request, or a prompt and the tokens
// after it.

namespace {

constexpr std::uint32_t kMostBatch = 1U << 20;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24U;
constexpr std::uint32_t kMostLevels = 64;
constexpr std::uint32_t kMostChildren = 65'536;
constexpr Range<Duration> kStepHost{Duration::zero(), std::chrono::seconds{4}};

constexpr std::array<Choice<synth::DecodeMode>, 2> kDecodeModes{
    {{"eager", synth::DecodeMode::kEager}, {"graph", synth::DecodeMode::kGraph}}};
constexpr std::array<Choice<synth::BatchingMode>, 2> kBatching{
    {{"static", synth::BatchingMode::kStatic}, {"continuous", synth::BatchingMode::kContinuous}}};
constexpr std::array<Choice<model::AttentionKernels>, 2> kAttention{
    {{"flash", model::AttentionKernels::kFlash},
     {"unfused", model::AttentionKernels::kUnfused}}};

// Either the whole expansion, or depth and width of a tree of SpecInfer's form.
model::TokenTree read_tree(ObjectReader& reader) {
  if (reader.has("expansion")) {
    for (const char* key : {"depth", "width"}) {
      if (reader.has(key)) {
        reader.fault(key, "found it beside \"expansion\"; expected one of them");
      }
    }
    return {reader.integers<std::uint32_t>("expansion", {1, kMostChildren})};
  }
  const auto depth = reader.integer<std::uint32_t>("depth", {1, kMostLevels});
  return synth::tree_of(depth, reader.integer<std::uint32_t>("width", {1, kMostChildren}, 1));
}

synth::SpeculationNames read_speculation(const ReadContext& context, ObjectReader reader) {
  synth::SpeculationNames out;
  out.draft = read_id(context, reader, "draft");
  out.acceptance = reader.number("acceptance", {0, 1});
  if (reader.present()) out.tree = read_tree(reader);
  return out;
}

/// An engine with Orca's rules, in which `batch` requests run at most; its cache has room for them
/// all, unless the config says otherwise. A step takes as many whole prompts as it has tokens for.
synth::EngineNames continuous_engine(const synth::InferenceNames& names,
                                     const std::optional<Bytes>& kv_cache) {
  constexpr std::uint64_t kPromptTokens = 2048, kMostBlocks = 1U << 30;
  const std::uint64_t prompt = *names.prompt_tokens;
  synth::EngineNames out;
  serving::SchedulerSpec& spec = out.settings.scheduler = serving::orca_settings();
  spec.max_num_seqs = names.batch;
  spec.max_model_len = static_cast<std::uint32_t>(prompt + names.output_tokens);
  spec.max_num_batched_tokens = static_cast<std::uint32_t>(
      std::min(prompt * names.batch, std::max(prompt, kPromptTokens)) + names.batch);
  const std::uint64_t blocks =
      std::uint64_t{names.batch} * serving::blocks_of(spec, spec.max_model_len);
  out.settings.cache = synth::CacheBlocks{
      static_cast<std::uint32_t>(std::min(blocks, kMostBlocks))};
  if (kv_cache) out.settings.cache = *kv_cache;
  out.requests.lengths = workload::DrawnLengths{
      workload::FixedLength{static_cast<std::uint32_t>(prompt)},
      workload::FixedLength{static_cast<std::uint32_t>(names.output_tokens)}, {}};
  return out;
}

void read_generation(const ReadContext& context, ObjectReader& program,
                     synth::InferenceNames& names) {
  names.prompt_tokens = program.integer<std::uint64_t>("prompt_tokens", {1, kMostTokens});
  names.output_tokens = program.integer<std::uint64_t>("output_tokens", {1, kMostTokens});
  names.decode = program.choice("decode", kDecodeModes, synth::DecodeMode::kEager);
  names.batching = program.choice("batching", kBatching, synth::BatchingMode::kStatic);
  const bool continuous = names.batching == synth::BatchingMode::kContinuous;
  if (program.has("speculation")) {
    names.speculation = read_speculation(context, program.child("speculation"));
    if (continuous) {
      program.fault("speculation", "found it with continuous batching; expected either");
    }
  }
  std::optional<Bytes> kv_cache;
  if (program.has("kv_cache")) {
    kv_cache = program.bytes("kv_cache", kPositiveBytes);
    if (!continuous) {
      program.fault("kv_cache", "a static batch has what it needs; expected no such key");
    }
  }
  if (continuous) names.engine = continuous_engine(names, kv_cache);
}

void refuse_keys(ObjectReader& program, std::initializer_list<const char*> keys,
                 const std::string& why) {
  for (const char* key : keys) {
    if (program.has(key)) program.fault(key, why);
  }
}

}  // namespace

synth::InferenceNames read_model_program(const ReadContext& context, ObjectReader& program) {
  synth::InferenceNames names;
  names.model = read_id(context, program, "model");
  names.batch = program.integer<std::uint32_t>("batch", {1, kMostBatch}, 1);
  names.precision = program.choice("precision", model::kPrecisionNames, model::Precision::kFp16);
  names.software = read_optional_id(context, program, "software").value_or(names.software);
  names.efficiency = read_optional_id(context, program, "efficiency");
  names.step_host = program.duration("step_host", kStepHost, Duration::zero());
  if (program.has("engine")) {
    refuse_keys(program,
                {"batch", "sequence", "attention", "prompt_tokens", "output_tokens", "speculation",
                 "batching", "kv_cache"},
                "an engine's requests are in \"requests\", its cache in \"engine\"; expected no "
                "such key");
    names.decode = program.choice("decode", kDecodeModes, synth::DecodeMode::kEager);
    read_engine_program(context, program, names);
    return names;
  }
  refuse_keys(program, {"requests"},
              "only a program with \"engine\" has requests of their own lengths; expected no such "
              "key");
  if (program.has("prompt_tokens")) {
    refuse_keys(program, {"sequence", "attention"},
                "a request with \"prompt_tokens\" generates; expected no such key");
    read_generation(context, program, names);
    return names;
  }
  refuse_keys(program, {"output_tokens", "decode", "speculation", "batching", "kv_cache"},
              "a request without \"prompt_tokens\" is one pass; expected no such key");
  names.sequence = program.integer<std::uint64_t>("sequence", {1, kMostTokens}, 0);
  names.attention = program.choice("attention", kAttention, model::AttentionKernels::kFlash);
  return names;
}

}  // namespace bubblesim::run::config_detail
