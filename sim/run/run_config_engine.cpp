// "engine" and "requests" of a filler's program: a server with the scheduler of a language-model
// engine, and what it is asked.
#include <fmt/format.h>

#include <array>
#include <string>

#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run::config_detail {
namespace {

using serving::SchedulerSpec;
using workload::ListedLengths;

constexpr std::uint32_t kMostStepTokens = 1U << 20;
constexpr std::uint32_t kMostSequences = 1U << 16;
constexpr std::uint32_t kMostWindow = 1U << 24;
constexpr std::uint32_t kMostBlockTokens = 4096;
constexpr std::uint32_t kMostCacheBlocks = 1U << 30;
constexpr std::uint32_t kMostPeriod = 1U << 30;
constexpr std::uint32_t kMostDrafts = 64;
constexpr std::uint32_t kMostPrefillGpus = 1U << 16;
constexpr std::uint32_t kMostTensor = 1024;
constexpr std::uint32_t kMostMembers = 1024;
constexpr std::uint32_t kMostUsers = 1U << 20;
constexpr std::uint32_t kMostTurns = 1U << 16;
/// Between prefill and decode. A link slower than Ethernet of 10 Mbit/s, or a write that costs
/// three times a round trip across the world, is a slip of a unit.
constexpr Range<BytesPerSecond> kPrefillLink{BytesPerSecond{1e6}};
constexpr Range<Duration> kPrefillWrite{Duration::zero(), std::chrono::seconds{1}};

enum class Rules : std::uint8_t { kVllm, kSarathi, kOrca };
constexpr std::array<Choice<Rules>, 3> kRules{
    {{"vllm", Rules::kVllm}, {"sarathi", Rules::kSarathi}, {"orca", Rules::kOrca}}};
constexpr std::array<Choice<serving::Order>, 2> kOrders{
    {{"first_come", serving::Order::kFirstCome}, {"priority", serving::Order::kPriority}}};
constexpr std::array<Choice<serving::Mixing>, 2> kMixings{
    {{"decode_first", serving::Mixing::kDecodeFirst},
     {"prompts_apart", serving::Mixing::kPromptsApart}}};
constexpr std::array<Choice<serving::Chunking>, 2> kChunkings{
    {{"chunks", serving::Chunking::kChunks}, {"whole", serving::Chunking::kWhole}}};
constexpr std::array<Choice<serving::Reserve>, 3> kReserves{
    {{"chunk", serving::Reserve::kChunk},
     {"prompt", serving::Reserve::kPrompt},
     {"request", serving::Reserve::kWholeRequest}}};
constexpr std::array<Choice<serving::CachePreemption>, 2> kPreemptions{
    {{"recompute", serving::CachePreemption::kRecompute},
     {"swap", serving::CachePreemption::kSwap}}};
constexpr std::array<Choice<serving::SwapTiming>, 2> kSwapTimings{
    {{"before", serving::SwapTiming::kBefore}, {"beside", serving::SwapTiming::kBeside}}};
constexpr std::array<Choice<synth::KvWrites>, 2> kKvWrites{
    {{"contiguous", synth::KvWrites::kContiguous}, {"blocks", synth::KvWrites::kBlocks}}};
constexpr std::array<Choice<serving::Pacing>, 2> kPacings{
    {{"synchronous", serving::Pacing::kSynchronous}, {"one_ahead", serving::Pacing::kOneAhead}}};
constexpr std::array<Choice<serving::OutputEnd>, 2> kOutputEnds{
    {{"token_limit", serving::OutputEnd::kTokenLimit},
     {"stop_token", serving::OutputEnd::kStopToken}}};
constexpr std::array<Choice<ListedLengths::Pick>, 2> kPicks{
    {{"in_order", ListedLengths::Pick::kInOrder}, {"at_random", ListedLengths::Pick::kAtRandom}}};

SchedulerSpec settings_of(Rules rules) {
  switch (rules) {
    case Rules::kVllm: return serving::vllm_settings();
    case Rules::kSarathi: return serving::sarathi_settings(SchedulerSpec{}.max_num_batched_tokens);
    case Rules::kOrca: return serving::orca_settings();
  }
  return {};
}

void read_sizes(ObjectReader& reader, SchedulerSpec& spec) {
  spec.max_num_batched_tokens = reader.integer<std::uint32_t>(
      "max_num_batched_tokens", {1, kMostStepTokens}, spec.max_num_batched_tokens);
  spec.max_num_seqs =
      reader.integer<std::uint32_t>("max_num_seqs", {1, kMostSequences}, spec.max_num_seqs);
  spec.max_model_len = reader.integer<std::uint32_t>("max_model_len", {2, kMostWindow});
  spec.block_size =
      reader.integer<std::uint32_t>("block_size", {1, kMostBlockTokens}, spec.block_size);
  spec.long_prefill_token_threshold =
      reader.integer<std::uint32_t>("long_prefill_token_threshold", {0, kMostStepTokens}, 0);
  spec.watermark = reader.number("watermark", {0, 0.99}, 0);
  spec.prefix_hit_rate = reader.number("prefix_hit_rate", {0, 0.99}, 0);
}

/// What the rules say, unless the config says otherwise.
void read_settings(ObjectReader& reader, SchedulerSpec& spec) {
  const auto choose = [&reader](const char* key, const auto& choices, auto& value) {
    if (reader.has(key)) value = reader.choice(key, choices);
  };
  if (reader.has("prefix_caching")) spec.enable_prefix_caching = reader.flag("prefix_caching");
  choose("order", kOrders, spec.order);
  choose("mixing", kMixings, spec.mixing);
  choose("chunking", kChunkings, spec.chunking);
  choose("reserve", kReserves, spec.reserve);
  choose("preemption", kPreemptions, spec.preemption);
  choose("swap_timing", kSwapTimings, spec.swap_timing);
  if (reader.has("swap_reuse")) spec.swap_reuse = reader.flag("swap_reuse");
  spec.swap_group = reader.integer<std::uint32_t>("swap_group", {0, kMostCacheBlocks}, 0);
  spec.priority_period = reader.integer<std::uint32_t>("priority_period", {0, kMostPeriod}, 0);
  choose("pacing", kPacings, spec.pacing);
  choose("output_end", kOutputEnds, spec.output_end);
}

synth::CacheSize read_cache(ObjectReader& reader) {
  reader.one_of({"kv_blocks", "kv_cache", "gpu_memory_utilization"});
  if (reader.has("kv_blocks")) {
    return synth::CacheBlocks{reader.integer<std::uint32_t>("kv_blocks", {1, kMostCacheBlocks})};
  }
  if (reader.has("kv_cache")) return reader.bytes("kv_cache", kPositiveBytes);
  if (!reader.has("gpu_memory_utilization")) return synth::CacheBlocks{1};
  return synth::MemoryShare{reader.number("gpu_memory_utilization", {0.01, 1})};
}

/// A file's place is held by chances, until it is read.
serving::Speculation read_drafts(const ReadContext& context, ObjectReader reader,
                                 synth::InferenceNames& names) {
  serving::Speculation drafts;
  drafts.tokens = reader.integer<std::uint32_t>("tokens", {1, kMostDrafts});
  if (const auto draft = read_optional_id(context, reader, "draft")) {
    names.speculation = {*draft, model::chain(drafts.tokens), 0};
  }
  reader.one_of({"acceptance", "accepted", "accepted_file"});
  if (reader.has("accepted_file")) {
    names.engine->accepted_file = read_path(context, reader, "accepted_file");
    drafts.accepted = serving::independent_acceptance(drafts.tokens, 0);
    return drafts;
  }
  drafts.accepted = reader.has("accepted")
                        ? reader.numbers("accepted", {0, 1})
                        : serving::independent_acceptance(
                              drafts.tokens, reader.number("acceptance", {0, 1}));
  return drafts;
}

synth::PrefillSplit read_prefill(ObjectReader reader) {
  synth::PrefillSplit split;
  split.gpus = reader.integer<std::uint32_t>("gpus", {1, kMostPrefillGpus});
  if (reader.has("link")) split.link = reader.rate("link", kPrefillLink);
  split.write = reader.duration("write", kPrefillWrite);
  split.writes = reader.choice("writes", kKvWrites, synth::KvWrites::kContiguous);
  return split;
}

void read_engine(const ReadContext& context, ObjectReader reader, synth::InferenceNames& names) {
  synth::EngineSettings& settings = names.engine->settings;
  settings.scheduler = settings_of(reader.choice("rules", kRules, Rules::kVllm));
  read_sizes(reader, settings.scheduler);
  read_settings(reader, settings.scheduler);
  if (reader.has("speculation")) {
    settings.scheduler.speculation = read_drafts(context, reader.child("speculation"), names);
  }
  settings.cache = read_cache(reader);
  if (reader.has("layers")) names.engine->layers = read_path(context, reader, "layers");
  if (reader.has("steps")) names.engine->steps = read_path(context, reader, "steps");
  if (names.engine->layers && names.engine->steps) {
    reader.fault("steps",
                 "found beside \"layers\", which says the same times; expected one of them");
  }
  settings.host_cache = reader.bytes("host_cache", {}, Bytes{0});
  const bool swaps = settings.scheduler.preemption == serving::CachePreemption::kSwap;
  if (swaps && settings.host_cache == Bytes{0}) {
    reader.fault("preemption", "found \"swap\" with no room on the host to swap to; expected "
                               "\"host_cache\" of a size, as \"16GB\", or \"recompute\"");
  }
  if (!swaps && settings.host_cache > Bytes{0}) {
    reader.fault("host_cache", "found room for swapped sequences without preemption by swapping; "
                               "expected preemption \"swap\", or no such key");
  }
  settings.tensor = reader.integer<std::uint32_t>("tensor_parallel", {1, kMostTensor}, 1);
  settings.members = reader.integer<std::uint32_t>("data_parallel", {1, kMostMembers}, 1);
  if (reader.has("prefill")) settings.prefill = read_prefill(reader.child("prefill"));
  if (!reader.present()) return;
  if (const auto right = serving::check(settings.scheduler); !right) {
    reader.fault("", right.error().message);
  }
}

/// A number of tokens, or a distribution, whose `most` is 0 where the config does not say it.
workload::LengthSpec read_length(ObjectReader& reader, const char* key) {
  if (reader.kind(key) != JsonKind::kObject) {
    return workload::FixedLength{reader.integer<std::uint32_t>(key, {1, kMostWindow})};
  }
  ObjectReader drawn = reader.child(key);
  drawn.expect("distribution", "lognormal");
  workload::LognormalLength length;
  length.mean = drawn.number("mean", {1, static_cast<double>(kMostWindow)});
  length.cv = drawn.number("cv", {0.01, 100});
  length.least = drawn.integer<std::uint32_t>("least", {1, kMostWindow}, 1);
  length.most = drawn.integer<std::uint32_t>("most", {1, kMostWindow}, 0);
  return length;
}

/// Prompt and output have room in the window together.
void set_most(ObjectReader& reader, const char* key, workload::LengthSpec& length,
              const workload::LengthSpec& other, std::uint32_t window) {
  auto* drawn = std::get_if<workload::LognormalLength>(&length);
  if (drawn == nullptr) return;
  if (drawn->most == 0) {
    const std::uint32_t other_longest = workload::longest(other);
    if (other_longest == 0) {
      reader.fault(key, "found no \"most\" in either length; expected it in one of them");
      drawn->most = drawn->least;
      return;
    }
    drawn->most = other_longest < window ? window - other_longest : 1;
    if (drawn->mean > drawn->most) {
      reader.fault(key, fmt::format("found \"mean\" {}; expected at most the {} that max_model_len "
                                    "leaves beside the other length, or \"most\"",
                                    drawn->mean, drawn->most));
    }
  }
  if (drawn->least > drawn->most) {
    reader.fault(key, "found \"least\" " + std::to_string(drawn->least) +
                          "; expected at most the " + std::to_string(drawn->most) +
                          " of \"most\", by default what max_model_len leaves beside the other "
                          "length's");
    drawn->most = drawn->least;
  }
}

// Turns of a conversation are known to share what was said before.
workload::Sessions read_sessions(ObjectReader& requests, const SchedulerSpec& scheduler) {
  if (scheduler.prefix_hit_rate > 0) {
    requests.fault("sessions", fmt::format("found beside \"prefix_hit_rate\" {} of \"engine\", "
                                           "which has no effect on turns; expected one of them",
                                           scheduler.prefix_hit_rate));
  }
  ObjectReader reader = requests.child("sessions");
  return {.users = reader.integer<std::uint32_t>("users", {1, kMostUsers}),
          .turns = reader.integer<std::uint32_t>("turns", {1, kMostTurns}),
          .window = scheduler.max_model_len};
}

synth::RequestNames read_requests(const ReadContext& context, ObjectReader reader,
                                  const SchedulerSpec& scheduler) {
  synth::RequestNames requests;
  if (reader.has("path")) {
    synth::RequestNames::File file;
    file.path = read_path(context, reader, "path");
    file.format = reader.choice("format", kFormats);
    file.pick = reader.choice("pick", kPicks, ListedLengths::Pick::kInOrder);
    requests.lengths = std::move(file);
    return requests;
  }
  workload::DrawnLengths drawn;
  drawn.prompt = read_length(reader, "prompt_tokens");
  drawn.output = read_length(reader, "output_tokens");
  set_most(reader, "prompt_tokens", drawn.prompt, drawn.output, scheduler.max_model_len);
  set_most(reader, "output_tokens", drawn.output, drawn.prompt, scheduler.max_model_len);
  if (reader.has("sessions")) drawn.sessions = read_sessions(reader, scheduler);
  requests.lengths = drawn;
  return requests;
}

}  // namespace

void read_engine_program(const ReadContext& context, ObjectReader& program,
                         synth::InferenceNames& names) {
  synth::EngineNames& engine = names.engine.emplace();
  read_engine(context, program.child("engine"), names);
  if (program.has("requests")) {
    engine.requests =
        read_requests(context, program.child("requests"), engine.settings.scheduler);
  }
}

}  // namespace bubblesim::run::config_detail
