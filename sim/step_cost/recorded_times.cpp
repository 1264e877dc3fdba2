#include "sim/step_cost/recorded_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/check.hpp"

namespace bubblesim::step_cost {
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

// As set_batch tells a step's sequences apart: by whether they have several new tokens. Drafts that
// are checked do, the last token of a prompt does not.
model::IterationSums iteration_sums(const RecordedStep& step, const CaptureSizes& sizes,
                                    std::uint32_t members) {
  model::IterationSums out;
  for (const StepSums* sums : {&step.prompts, &step.singles}) {
    add(*sums, sums->tokens > sums->sequences ? out.prompts : out.singles);
  }
  const auto tokens =
      static_cast<std::uint32_t>(std::llround(step.prompts.tokens + step.singles.tokens));
  out.tokens = padded_tokens(tokens, sizes);
  out.group_tokens = members * out.tokens;
  const std::uint64_t filling = out.tokens - tokens;
  for (std::uint64_t i = 0; i < filling; ++i) out.singles.add({1, 0});
  out.rows = filling + static_cast<std::uint64_t>(
                           std::llround(step.prompts.sequences + step.singles.sequences));
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
                             const CaptureSizes& sizes, std::uint32_t members)
    : model_(model) {
  struct Mean {
    double logs = 0;
    double count = 0;
  };
  std::array<std::map<double, Mean>, 2> means;
  for (const RecordedStep& step : steps.steps) {
    const model::IterationSums sums = iteration_sums(step, sizes, members);
    Mean& mean = means[sums.prompts.sequences > 0 ? 1 : 0][static_cast<double>(sums.tokens)];
    const bool in_graph = sums.prompts.sequences == 0 &&
                          fits_graph(static_cast<std::uint32_t>(sums.tokens), sizes);
    const double factor = step.kernels_us / model_.sums_us(sums, in_graph);
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
  return model_.batch_us(batch) * factor(batch.decodes_only(), batch.padded_tokens);
}

double RecordedTimes::experts_us(double) { return 0; }

void RecordedTimes::add_counters(CounterSet& counters) const {
  counters.add(kBeyond, beyond_);
  counters.add(kOtherKind, other_kind_);
  counters.add(kFar, far_);
}

}  // namespace bubblesim::step_cost
