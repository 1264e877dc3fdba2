#include "traces/iterations/job_pass.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/nearest_rank.hpp"
#include "sim/base/number_text.hpp"
#include "traces/iterations/before_window.hpp"
#include "traces/iterations/host_clock.hpp"
#include "traces/iterations/marked_iterations.hpp"
#include "traces/sort_records.hpp"

namespace bubblesim::traces {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  const auto value = parse_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

Result<IterationChoice> parse_iteration_choice(std::string_view text) {
  using Kind = IterationChoice::Kind;
  if (text == "settled") return IterationChoice{};
  if (text == "all") return IterationChoice{Kind::kAll};
  const std::size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (first && last && *first <= *last) return IterationChoice{Kind::kRange, *first, *last};
  return fail({}, {},
              "found iterations \"" + std::string(text) +
                  "\"; expected \"settled\", \"all\", a number as \"7\" or a range as \"5-9\"");
}

std::string iteration_choice_text(const IterationChoice& choice) {
  switch (choice.kind) {
    case IterationChoice::Kind::kSettled: return "settled";
    case IterationChoice::Kind::kAll: return "all";
    case IterationChoice::Kind::kRange: break;
  }
  std::string text = std::to_string(choice.first);
  if (choice.last != choice.first) text += "-" + std::to_string(choice.last);
  return text;
}

namespace {

constexpr CounterSpec kUnmarkedRank{
    "iterations_unmarked", Severity::kNotice,
    "ranks without iteration markers: another rank's count, or the whole recording is one "
    "iteration"};

struct UseName {
  IterationUse use;
  std::string_view name;
  std::string_view label;
};
constexpr std::array<UseName, 9> kUseNames{{
    {IterationUse::kUsed, "used", "used"},
    {IterationUse::kFirst, "first", "the window's first"},
    {IterationUse::kFewOperations, "few_operations", "its device work is cut"},
    {IterationUse::kAllocations, "allocations", "a storm of allocations"},
    {IterationUse::kNewKernels, "new_kernels", "kernels of its own: autotuning"},
    {IterationUse::kSlowStart, "slow_start", "far slower than those after it"},
    {IterationUse::kNotOnAllRanks, "not_on_all_ranks", "not recorded on all ranks"},
    {IterationUse::kApart, "apart", "not beside the ones used"},
    {IterationUse::kNotChosen, "not_chosen", "not chosen"},
}};

const UseName& names_of(IterationUse use) { return kUseNames[static_cast<std::size_t>(use)]; }

/// An iteration of the job: one on each rank that recorded it. Those of a job are in order of time.
struct JobIteration {
  std::int64_t number = 0;
  std::vector<std::optional<std::size_t>> place;  ///< by rank, into its `recorded`
  IterationUse use = IterationUse::kUsed;
};

bool same_lengths(const std::vector<RankPass>& ranks) {
  return std::ranges::all_of(ranks, [&](const RankPass& rank) {
    return rank.recorded.size() == ranks.front().recorded.size();
  });
}

enum class JoinBy : std::uint8_t { kNumber, kPlace };

/// Says which iterations of different ranks are one: those of one epoch and number. Keys of a rank
/// rise in time.
struct IterationKey {
  std::int64_t epoch = 0;  ///< how often the numbers have started again
  std::int64_t number = 0;
  friend auto operator<=>(const IterationKey&, const IterationKey&) = default;
};

std::vector<IterationKey> keys_of(const RankPass& rank, JoinBy join_by) {
  std::vector<IterationKey> keys;
  for (std::size_t i = 0; i < rank.recorded.size(); ++i) {
    const std::int64_t number = rank.recorded[i].number;
    if (join_by == JoinBy::kPlace) {
      keys.push_back({0, static_cast<std::int64_t>(i)});
      continue;
    }
    const std::int64_t epoch = keys.empty() ? 0 : keys.back().epoch;
    const bool starts_again = !keys.empty() && number <= keys.back().number;
    keys.push_back({epoch + (starts_again ? 1 : 0), number});
  }
  return keys;
}

std::vector<IterationKey> later(std::vector<IterationKey> keys, std::int64_t epochs) {
  for (IterationKey& key : keys) key.epoch += epochs;
  return keys;
}

// A window that opened an iteration later may lack an epoch that others have begun with: of the
// numberings one epoch apart, the one by which the rank shares most iterations with the first; of
// equals the one that counts from the window's begin, then the later one.
std::vector<IterationKey> fitted_to(const std::vector<IterationKey>& first,
                                    const std::vector<IterationKey>& keys) {
  const auto shared = [&](const std::vector<IterationKey>& fitted) {
    std::vector<IterationKey> common;
    std::ranges::set_intersection(first, fitted, std::back_inserter(common));
    return common.size();
  };
  std::vector<IterationKey> best = keys;
  for (const std::int64_t epochs : {1, -1}) {
    std::vector<IterationKey> moved = later(keys, epochs);
    if (shared(moved) > shared(best)) best = std::move(moved);
  }
  return best;
}

// A rank without any device operation takes no part.
std::vector<JobIteration> join(const std::vector<RankPass>& ranks, JoinBy join_by) {
  std::map<IterationKey, JobIteration> all;
  std::vector<IterationKey> first;
  std::ptrdiff_t taking_part = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<IterationKey> keys = fitted_to(first, keys_of(ranks[r], join_by));
    if (first.empty()) first = keys;
    if (!ranks[r].recorded.empty()) ++taking_part;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const RecordedIteration& recorded = ranks[r].recorded[i];
      JobIteration& iteration = all[keys[i]];
      iteration.number = recorded.number;
      iteration.place.resize(ranks.size());
      iteration.place[r] = i;
      if (iteration.use == IterationUse::kUsed) iteration.use = recorded.use;
    }
  }
  std::vector<JobIteration> sorted;
  for (auto& [key, one] : all) {
    const auto known = std::ranges::count_if(
        one.place, [](const auto& place) { return place.has_value(); });
    if (known < taking_part) one.use = IterationUse::kNotOnAllRanks;
    sorted.push_back(std::move(one));
  }
  return sorted;
}

// By number; by place where ranks number them differently.
std::vector<JobIteration> job_iterations(const std::vector<RankPass>& ranks) {
  std::vector<JobIteration> joined = join(ranks, JoinBy::kNumber);
  const bool none = std::ranges::all_of(joined, [](const JobIteration& iteration) {
    return iteration.use == IterationUse::kNotOnAllRanks;
  });
  return none && same_lengths(ranks) ? join(ranks, JoinBy::kPlace) : joined;
}

Result<void> choose(std::vector<JobIteration>& iterations, const IterationChoice& choice) {
  using Kind = IterationChoice::Kind;
  if (choice.kind == Kind::kSettled) return {};
  bool has_used = false;
  for (JobIteration& iteration : iterations) {
    if (iteration.use == IterationUse::kNotOnAllRanks) continue;
    const bool wanted = choice.kind == Kind::kAll || (iteration.number >= choice.first &&
                                                      iteration.number <= choice.last);
    iteration.use = wanted ? IterationUse::kUsed : IterationUse::kNotChosen;
    has_used |= wanted;
  }
  if (has_used || iterations.empty()) return {};
  const auto [lowest, highest] =
      std::ranges::minmax_element(iterations, {}, &JobIteration::number);
  return fail({}, {},
              "found no iteration " + iteration_choice_text(choice) +
                  " on all ranks; recorded are " + std::to_string(lowest->number) + " to " +
                  std::to_string(highest->number));
}

// If nothing is settled, the last that all ranks have recorded whole, or else the last.
void use_one_at_least(std::vector<JobIteration>& iterations) {
  const auto is_used = [](const JobIteration& iteration) {
    return iteration.use == IterationUse::kUsed;
  };
  if (std::ranges::any_of(iterations, is_used)) return;
  JobIteration* best = nullptr;
  for (JobIteration& iteration : iterations) {
    if (iteration.use == IterationUse::kNotOnAllRanks) continue;
    const bool cut = iteration.use == IterationUse::kFewOperations;
    if (best == nullptr || !cut || best->use == IterationUse::kFewOperations) best = &iteration;
  }
  if (best != nullptr) best->use = IterationUse::kUsed;
}

// The longest run of used neighbours, of equals the last, stays used.
void keep_neighbours(std::vector<JobIteration>& iterations) {
  std::size_t best_end = 0;
  std::size_t best = 0;
  std::size_t run = 0;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    run = iterations[i].use == IterationUse::kUsed ? run + 1 : 0;
    if (run == 0 || run < best) continue;
    best = run;
    best_end = i + 1;
  }
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const bool kept = i < best_end && i + best >= best_end;
    if (iterations[i].use == IterationUse::kUsed && !kept) {
      iterations[i].use = IterationUse::kApart;
    }
  }
}

void give_back(const std::vector<JobIteration>& iterations, std::vector<RankPass>& ranks) {
  for (const JobIteration& iteration : iterations) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!iteration.place[r]) continue;
      RankPass& rank = ranks[r];
      const std::size_t place = *iteration.place[r];
      rank.recorded[place].use = iteration.use;
      if (iteration.use != IterationUse::kUsed) continue;
      if (rank.count++ == 0) rank.first = place;
      BUBBLESIM_CHECK(place == rank.first + rank.count - 1, "a pass's iterations are neighbours");
    }
  }
}

// Ranks on one clock go through their iterations together: one without markers has another's.
void share_markers(const std::vector<const RankTrace*>& traces, std::vector<RankPass>& ranks) {
  const auto marked = std::ranges::find_if(ranks, &RankPass::marked);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].marked) continue;
    ranks[r].counters.add(kUnmarkedRank);
    if (marked == ranks.end() || traces[r]->device_ops.empty()) continue;
    ranks[r].recorded = marked->recorded;
    ranks[r].marked = true;
  }
}

void set_lengths(const std::vector<const RankTrace*>& traces, std::vector<RankPass>& ranks) {
  Duration common{};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].length = std::max(ranks[r].host_time, ranks[r].device_time);
    if (has_collectives(*traces[r])) common = std::max(common, ranks[r].length);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].count > 0 && has_collectives(*traces[r])) ranks[r].length = common;
  }
}

std::vector<RankPass> recorded_passes(const std::vector<const RankTrace*>& traces) {
  std::vector<RankPass> ranks(traces.size());
  for (std::size_t r = 0; r < traces.size(); ++r) {
    find_recorded(*traces[r], ranks[r]);
    ranks[r].host_ahead = host_ahead(*traces[r]);
  }
  share_markers(traces, ranks);
  for (std::size_t r = 0; r < traces.size(); ++r) {
    assign_device_work(*traces[r], ranks[r]);
    find_warm_up(*traces[r], ranks[r]);
  }
  return ranks;
}

// "; left out: 0 (the window's first), 3 to 5 (not chosen)"
std::string left_out_text(const std::vector<RecordedIteration>& recorded) {
  std::string text;
  for (std::size_t i = 0; i < recorded.size();) {
    const std::size_t first = i;
    const IterationUse use = recorded[first].use;
    while (i < recorded.size() && recorded[i].use == use) ++i;
    if (use == IterationUse::kUsed) continue;
    text += (text.empty() ? "; left out: " : ", ") + std::to_string(recorded[first].number);
    if (i - first > 1) text += " to " + std::to_string(recorded[i - 1].number);
    text += " (" + std::string(iteration_use_label(use)) + ")";
  }
  return text;
}

Result<JobPass> find_pass(const std::vector<const RankTrace*>& traces,
                          const IterationChoice& choice) {
  JobPass pass{recorded_passes(traces)};
  std::vector<JobIteration> iterations = job_iterations(pass.ranks);
  BUBBLESIM_RETURN_IF_ERROR(choose(iterations, choice));
  use_one_at_least(iterations);
  keep_neighbours(iterations);
  give_back(iterations, pass.ranks);
  for (std::size_t r = 0; r < traces.size(); ++r) measure_pass(*traces[r], pass.ranks[r]);
  leave_out_start_skew(traces, pass.ranks);
  set_lengths(traces, pass.ranks);
  return pass;
}

}  // namespace

std::string_view iteration_use_name(IterationUse use) { return names_of(use).name; }
std::string_view iteration_use_label(IterationUse use) { return names_of(use).label; }

TraceTime RankPass::without_waits(TraceTime at) const {
  Duration later{};
  for (auto wait = waits.rbegin(); wait != waits.rend() && wait->end > at; ++wait) {
    later += wait->end - std::max(wait->begin, at);
  }
  return at + later;
}

Duration RankPass::iteration_time() const {
  return count == 0 ? Duration{} : length / static_cast<std::int64_t>(count);
}

Duration JobPass::iteration_time() const {
  Duration sum{};
  std::int64_t counted = 0;
  for (const RankPass& rank : ranks) {
    if (rank.count == 0) continue;
    sum += rank.iteration_time();
    ++counted;
  }
  return counted == 0 ? sum : sum / counted;
}

std::size_t JobPass::iterations_recorded() const {
  std::size_t most = 0;
  for (const RankPass& rank : ranks) most = std::max(most, rank.recorded.size());
  return most;
}

std::size_t JobPass::iterations_used() const {
  std::size_t most = 0;
  for (const RankPass& rank : ranks) most = std::max(most, rank.count);
  return most;
}

std::string JobPass::text() const {
  const auto rank = std::ranges::max_element(
      ranks, {}, [](const RankPass& pass) { return pass.recorded.size(); });
  if (rank == ranks.end() || rank->recorded.empty()) return "none recorded";
  if (!rank->marked) return "none marked: the whole recording is taken as one";
  std::string text = std::to_string(rank->recorded.size()) + " recorded, " +
                     std::to_string(rank->count) + " used (" +
                     std::to_string(rank->recorded[rank->first].number);
  if (rank->count > 1) {
    text += " to " + std::to_string(rank->recorded[rank->first + rank->count - 1].number);
  }
  text += ")";
  return text + left_out_text(rank->recorded);
}

Result<JobPass> find_job_pass(const JobTrace& job, const IterationChoice& choice) {
  std::vector<const RankTrace*> traces;
  for (const RankTrace& rank : job.ranks) traces.push_back(&rank);
  return find_pass(traces, choice);
}

RankPass median_iteration(const RankTrace& rank, const RankPass& pass) {
  if (pass.count < 2) return pass;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pass.count; ++i) order.push_back(pass.first + i);
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return pass.recorded[i].host.length(); });
  RankPass median = pass;
  median.first = percentile_of(order, 50);
  median.count = 1;
  measure_pass(rank, median);
  median.length = std::max(median.host_time, median.device_time);
  return median;
}

Result<RankPass> find_rank_pass(const RankTrace& rank, const IterationChoice& choice) {
  BUBBLESIM_ASSIGN_OR_RETURN(JobPass pass, find_pass({&rank}, choice));
  return std::move(pass.ranks.front());
}

namespace {

// A pass as it repeats, written as a recording.

class Repetition {
 public:
  Repetition(const RankTrace& rank, const RankPass& pass) : rank_(rank), pass_(pass) {
    out_.rank = rank.rank;
    out_.world_size = rank.world_size;
    out_.device = rank.device;
    out_.names = rank.names;
    out_.shapes = rank.shapes;
    out_.threads = rank.threads;
    out_.streams = rank.streams;
    out_.collectives = rank.collectives;
    out_.provenance = rank.provenance;
  }

  RepeatedTrace run() {
    const Interval device = device_span();
    if (device.end < device.begin) return {std::move(out_), {}};  // nothing to repeat
    const auto passes = (device.length().count() + pass_.length.count() - 1) /
                        std::max<std::int64_t>(1, pass_.length.count());
    // Where device work outlasts a pass, the window ends beside passes after it.
    for (std::int64_t copy = passes; copy > -std::max<std::int64_t>(1, passes); --copy) {
      add(copy * pass_.length);
    }
    sort();
    return {std::move(out_), {device.end - pass_.length, device.end}};
  }

 private:
  [[nodiscard]] Interval device_span() const {
    Interval span{TraceTime::max(), TraceTime::min()};
    for (std::size_t i = 0; i < rank_.device_ops.size(); ++i) {
      if (!pass_.holds_op(i)) continue;
      span.begin = std::min(span.begin, pass_.ran_without_waits(i, rank_.device_ops[i].start));
      span.end = std::max(span.end, pass_.ran_without_waits(i, rank_.device_ops[i].end()));
    }
    return span;
  }

  // The pass, so much earlier.
  void add(Duration earlier) {
    std::vector<std::uint32_t> places(rank_.host_calls.size(), kNone);
    for (std::size_t i = 0; i < rank_.host_calls.size(); ++i) {
      HostCall call = rank_.host_calls[i];
      if (!pass_.holds_call(call.start)) continue;
      move(call, pass_.without_waits(call.start) - earlier,
           pass_.without_waits(call.end()) - earlier);
      places[i] = static_cast<std::uint32_t>(out_.host_calls.size());
      out_.host_calls.push_back(call);
    }
    for (std::size_t i = 0; i < rank_.device_ops.size(); ++i) {
      if (!pass_.holds_op(i)) continue;
      DeviceOp op = rank_.device_ops[i];
      move(op, pass_.ran_without_waits(i, op.start) - earlier,
           pass_.ran_without_waits(i, op.end()) - earlier);
      if (op.launch != kNone) op.launch = places[op.launch];
      out_.device_ops.push_back(op);
    }
  }

  template <class Record>
  static void move(Record& record, TraceTime start, TraceTime end) {
    record.start = start;
    record.duration = end - start;
  }

  // Both by start; launches follow their calls.
  void sort() {
    const std::vector<std::uint32_t> places = places_by_start(out_.host_calls);
    for (DeviceOp& op : out_.device_ops) {
      if (op.launch != kNone) op.launch = places[op.launch];
    }
    std::ranges::stable_sort(out_.device_ops, {}, &DeviceOp::start);
  }

  const RankTrace& rank_;
  const RankPass& pass_;
  RankTrace out_;
};

}  // namespace

RepeatedTrace repeated_trace(const RankTrace& rank, const RankPass& pass) {
  return Repetition(rank, pass).run();
}

}  // namespace bubblesim::traces
