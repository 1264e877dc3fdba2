// "program" of a filler that is made from a model: one pass a request, or a prompt and the tokens
// after it.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "sim/model/precision_names.hpp"
#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run::config_detail {
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
