#include "sim/step_cost/model_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <variant>

#include "sim/base/check.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/model/kernel_time.hpp"

namespace bubblesim::step_cost {
namespace {

model::Split split_of(const ServerLayout& layout) {
  model::Split split;
  split.tensor = layout.tensor;
  split.expert = layout.expert_ranks();
  return split;
}

// The sums of whole steps, and of the sequences that only fill a graph up.
void add_shape(const serving::StepShape& shape, std::uint64_t sequences,
               model::IterationSums& sums) {
  const std::uint32_t filling = shape.padded - shape.tokens;
  for (std::uint32_t i = 0; i < filling; ++i) sums.singles.add({1, 0});
  sums.tokens = shape.padded;
  sums.rows = sequences + filling;
  sums.group_tokens = shape.group;
}

}  // namespace

ModelTimes::ModelTimes(const model::ModelSpec& model, const ServerLayout& layout,
                       const hardware::GpuSpec& gpu, const model::Efficiency& efficiency,
                       model::Precision precision)
    : model_(model),
      split_(split_of(layout)),
      gpu_(gpu),
      efficiency_(efficiency),
      precision_(precision) {}

Result<void> ModelTimes::check_work(const model::ModelSpec& model, const ServerLayout& layout) {
  BUBBLESIM_RETURN_IF_ERROR(
      model::decode_work(model, split_of(layout), model::Precision::kBf16, 1, 1));
  return {};
}

double ModelTimes::batch_us(const Batch& batch) {
  model::IterationSums sums;
  for (const PromptChunk& chunk : batch.chunks) sums.prompts.add({chunk.tokens, chunk.cached});
  for (const std::uint32_t length : batch.decodes) sums.singles.add({1, length - 1});
  add_shape(batch.shape, batch.sequences, sums);
  return sums_us(sums, batch.shape.graphs);
}

double ModelTimes::sums_us(const model::IterationSums& sums, StepGraphs graphs) const {
  const auto work = model::summed_iteration_work(model_, split_, precision_, sums);
  BUBBLESIM_CHECK(work.has_value(), "a step whose work cannot be made");
  std::vector<double> layer_us(work->kinds.size(), 0);
  for (std::size_t kind = 0; kind < work->kinds.size(); ++kind) {
    for (const model::WorkItem& item : work->kinds[kind].forward) {
      if (const auto* kernel = std::get_if<model::KernelWork>(&item)) {
        layer_us[kind] += 1e6 * to_seconds(time_kernel(*kernel, gpu_, efficiency_).duration);
      }
    }
  }
  double sum = 0;
  std::size_t operations = 0;
  for (const std::uint32_t kind : work->layers) {
    sum += layer_us[kind];
    operations += work->kinds[kind].forward.size();
  }
  const double gaps = static_cast<double>(std::max<std::size_t>(operations, 1) - 1);
  // Before each kernel of an attention, and before the piece after them.
  const double apart = graphs == StepGraphs::kNone    ? gaps
                       : graphs == StepGraphs::kWhole ? 0
                                                      : attention_gaps(sums);
  return sum + 1e6 * (apart * to_seconds(gpu_.stream_gap) +
                      (gaps - apart) * to_seconds(gap_in_graph(gpu_)));
}

double ModelTimes::attention_gaps(const model::IterationSums& sums) const {
  const auto& transformer = std::get<model::TransformerSpec>(model_.network);
  const auto kernels = model::attention_work(model_, split_, precision_, sums).size();
  return static_cast<double>(transformer.layers) * static_cast<double>(kernels + 1);
}

namespace {

constexpr CounterSpec kBeyond{"beyond_recorded_steps", Severity::kNotice,
                              "steps of fewer or more tokens than any that was recorded; they are "
                              "as much longer than by the kernel model as the nearest one"};
constexpr CounterSpec kOtherKind{"other_kind_of_recorded_steps", Severity::kNotice,
                                 "steps with prompts where only steps without were recorded, or "
                                 "the other way; they are as much longer than by the kernel model "
                                 "as those"};
constexpr CounterSpec kFar{"recorded_steps_far_from_model", Severity::kNotice,
                           "recorded steps that took less than half or more than three times as "
                           "long as the kernel model says: perhaps of another model, precision or "
                           "number of GPUs"};
constexpr double kLeastFactor = 0.5;
constexpr double kMostFactor = 3;

// Pairs of a query and a key that it sees, of causal new tokens: sums of q (k - q) + q (q + 1) / 2.
// How long the longest prompt is was not recorded: the mean over tokens.
model::AttentionSums attention_sums(const StepSums& sums) {
  model::AttentionSums out;
  out.sequences = sums.sequences;
  out.queries = sums.tokens;
  out.keys = sums.keys;
  out.pairs = sums.products - (sums.squares - sums.tokens) / 2;
  out.longest = sums.tokens > 0 ? sums.squares / sums.tokens : 0;
  return out;
}

void add(const StepSums& sums, model::AttentionSums& to) {
  const model::AttentionSums more = attention_sums(sums);
  to.sequences += more.sequences;
  to.queries += more.queries;
  to.keys += more.keys;
  to.pairs += more.pairs;
  to.longest = std::max(to.longest, more.longest);
}

serving::StepShape recorded_shape(const RecordedStep& step, const CapturedGraphs& captured) {
  const double query = captured.query;
  const auto uniform = [query](const StepSums& sums) {  // by the least sum of squares
    return sums.tokens == query * sums.sequences && sums.squares == query * sums.tokens;
  };
  const auto tokens = std::llround(step.prompts.tokens + step.singles.tokens);
  return shape_of(static_cast<std::uint32_t>(tokens),
                  uniform(step.prompts) && uniform(step.singles), captured);
}

// As set_batch tells a step's sequences apart: by whether they have several new tokens. Drafts that
// are checked do, the last token of a prompt does not.
model::IterationSums iteration_sums(const RecordedStep& step, const serving::StepShape& shape) {
  model::IterationSums out;
  for (const StepSums* sums : {&step.prompts, &step.singles}) {
    add(*sums, sums->tokens > sums->sequences ? out.prompts : out.singles);
  }
  const auto sequences = std::llround(step.prompts.sequences + step.singles.sequences);
  add_shape(shape, static_cast<std::uint64_t>(sequences), out);
  return out;
}

double interpolated(const std::map<double, double>& factors, double tokens) {
  const auto after = factors.lower_bound(tokens);
  if (after == factors.begin()) return after->second;
  if (after == factors.end()) return factors.rbegin()->second;
  const auto before = std::prev(after);
  const double way =
      std::log(tokens / before->first) / std::log(after->first / before->first);
  return before->second + way * (after->second - before->second);
}

}  // namespace

RecordedTimes::RecordedTimes(const ModelTimes& model, const RecordedSteps& steps,
                             const CapturedGraphs& captured, std::uint32_t members)
    : model_(model) {
  struct Mean {
    double logs = 0;
    double count = 0;
  };
  std::array<std::map<double, Mean>, 2> means;
  for (const RecordedStep& step : steps.steps) {
    serving::StepShape shape = recorded_shape(step, captured);
    shape.group = members * shape.padded;
    const model::IterationSums sums = iteration_sums(step, shape);
    Mean& mean = means[sums.prompts.sequences > 0 ? 1 : 0][static_cast<double>(sums.tokens)];
    const double factor = step.kernels_us / model_.sums_us(sums, shape.graphs);
    if (factor < kLeastFactor || factor > kMostFactor) ++far_;
    mean.logs += std::log(factor);
    mean.count += 1;
  }
  for (std::size_t kind = 0; kind < means.size(); ++kind) {
    for (const auto& [tokens, mean] : means[kind]) {
      factors_[kind][tokens] = std::exp(mean.logs / mean.count);
    }
  }
  BUBBLESIM_CHECK(!steps.steps.empty(), "recorded steps without a step");
}

double RecordedTimes::factor(bool decodes_only, double tokens) {
  std::size_t kind = decodes_only ? 0 : 1;
  if (factors_[kind].empty()) {
    ++other_kind_;
    kind = 1 - kind;
  }
  const Factors& factors = factors_[kind];
  if (tokens < factors.begin()->first || tokens > factors.rbegin()->first) ++beyond_;
  return interpolated(factors, tokens);
}

double RecordedTimes::batch_us(const Batch& batch) {
  return model_.batch_us(batch) * factor(batch.decodes_only(), batch.shape.padded);
}

void RecordedTimes::add_counters(CounterSet& counters) const {
  counters.add(kBeyond, beyond_);
  counters.add(kOtherKind, other_kind_);
  counters.add(kFar, far_);
}

namespace {

// Tokens of a step: more than any engine computes at once.
constexpr double kMostTokens = 1e8;
constexpr double kMostKeys = 1e12;
constexpr double kRounding = 1e-9;  // relative

// Least of equal sequences, up to their rounding; most if all but one have a single token.
bool squares_can_be(const StepSums& sums) {
  const double rest = sums.sequences - 1;
  const double longest = sums.tokens - rest;
  return sums.squares * sums.sequences >= sums.tokens * sums.tokens * (1 - kRounding) &&
         sums.squares <= longest * longest + rest;
}

}  // namespace

bool can_be(const StepSums& sums) {
  const auto whole = [](double value) { return std::floor(value) == value; };
  if (sums.tokens <= 0) return sums == StepSums{};
  return whole(sums.sequences) && whole(sums.tokens) && sums.sequences >= 1 &&
         sums.sequences <= sums.tokens && sums.tokens <= sums.keys &&
         squares_can_be(sums) && sums.squares <= sums.products &&
         sums.products <= sums.tokens * sums.keys &&
         sums.tokens <= kMostTokens && sums.keys <= kMostKeys;
}

namespace {

constexpr std::string_view kStepsFormat = "bubblesim.steps/1";
constexpr Range<double> kStepSum{0, 1e18};
constexpr Range<double> kStepMicroseconds{1e-3, 1e9};

StepSums read_sums(ObjectReader reader) {
  StepSums out;
  out.sequences = reader.number("sequences", kStepSum);
  out.tokens = reader.number("tokens", kStepSum);
  out.keys = reader.number("keys", kStepSum);
  out.squares = reader.number("squares", kStepSum);
  out.products = reader.number("products", kStepSum);
  if (reader.present() && !can_be(out)) {
    reader.fault("", "found sums that no sequences have; expected " + std::string(kSumsThatCanBe));
  }
  return out;
}

}  // namespace

CheckedResult<RecordedSteps> read_steps_file(const std::string& path) {
  auto read = read_whole_file(path, [&](ObjectReader& root) {
    RecordedSteps out;
    root.expect("format", kStepsFormat);
    out.gpu = root.text("gpu");
    out.source = root.text("source");
    for (ObjectReader step : root.children("steps")) {
      RecordedStep& made = out.steps.emplace_back();
      made.prompts = read_sums(step.child("prompts"));
      made.singles = read_sums(step.child("singles"));
      made.kernels_us = step.number("kernels_us", kStepMicroseconds);
      if (step.present() && made.prompts.tokens + made.singles.tokens < 1) {
        step.fault("", "has no tokens; expected 1 or more");
      }
    }
    root.finish();
    return out;
  });
  if (read && read->steps.empty()) return fail(path, "/steps", "is empty; expected steps");
  return read;
}

}  // namespace bubblesim::step_cost
