#include "sim/run/precision_watch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/run/simulation_results.hpp"

namespace bubblesim::run {
namespace {

using observe::Course;
using observe::Estimate;
using observe::Progress;

constexpr double kLonger = 1.25;         // from look to look
constexpr Duration::rep kSettlings = 2;  // a window is at least one part in so many of them
constexpr double kRuleOfThree = 3;
constexpr double kLatencyPercent = 95;
constexpr Duration::rep kAlone = 5;      // least windows in which a filler alone keeps up or not
constexpr double kLittle = 0.1;  // of what a filler does alone

Duration longer(Duration window) {
  return Duration{std::llround(static_cast<double>(window.count()) * kLonger)};
}

// Whole passes, since the iterations of one are not alike.
std::vector<Progress> passes_of(const TrainingMonitor& rank, Duration warmup) {
  const auto per_pass = std::max<std::size_t>(1, rank.run->program().iterations);
  const std::vector<Duration>& times = rank.iterations;
  std::vector<Progress> passes;
  for (std::size_t i = observe::first_after(times, warmup); i + per_pass <= times.size();
       i += per_pass) {
    Progress pass{static_cast<double>(per_pass), {}};
    for (std::size_t k = i; k < i + per_pass; ++k) pass.took += times[k];
    passes.push_back(pass);
  }
  return passes;
}

std::optional<Estimate> rate_over(const std::vector<std::vector<Progress>>& places,
                                  double confidence) {
  const std::vector<Course> courses(places.begin(), places.end());
  return observe::rate_by_batches(courses, confidence);
}

double done_in(const std::vector<std::vector<Progress>>& places) {
  double all = 0;
  for (const auto& place : places) {
    for (const Progress& piece : place) all += piece.done;
  }
  return all;
}

// What has not happened yet, a second, in a window so long.
Estimate unseen(double done, double a_piece, Duration window) {
  const double seconds = to_seconds(window);
  return {done / seconds, kRuleOfThree * a_piece / seconds};
}

}  // namespace

Duration settling_of(const RunScenario& scenario) {
  if (scenario.policy == nullptr || !scenario.policy->settling) return {};
  return scenario.policy->settling(*scenario.parameters, scenario.iteration);
}

PrecisionWatch::PrecisionWatch(const LoadedRun& loaded, const RunScenario& scenario,
                               const Nodes& nodes, SimTime warmup)
    : loaded_(loaded), goal_(*loaded.config.precision), scenario_(scenario), nodes_(nodes),
      warmup_(warmup), overloaded_since_(loaded.config.fillers.size()) {
  const Duration least = std::max(goal_.least, settling_of(scenario) / kSettlings);
  next_ = warmup_ + least;
  last_ = std::max(next_, warmup_ + goal_.most);
  found_.confidence = goal_.confidence;
}

bool PrecisionWatch::look(SimTime now) {
  found_.figures.clear();
  settled_ = true;
  if (scenario_.training) look_at_training(now);
  for (const std::uint32_t filler : scenario_.fillers) look_at_filler(filler, now);
  next_ = std::min(last_, warmup_ + longer(now - warmup_));
  const bool before = std::exchange(known_, settled_ && unknown() == 0);
  return known_ && before;
}

std::uint64_t PrecisionWatch::unknown() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(found_.figures, [](const observe::KnownFigure& known) {
        return !known.reached && !known.overloaded;
      }));
}

void PrecisionWatch::add(observe::KnownFigure figure, const std::optional<Estimate>& estimate) {
  if (estimate) figure.found = estimate->relative();
  figure.reached = figure.found && *figure.found <= figure.wanted;
  found_.figures.push_back(std::move(figure));
}

void PrecisionWatch::look_at_training(SimTime now) {
  std::vector<std::vector<Progress>> ranks;
  for (const auto& node : nodes_) {
    if (node->training() == nullptr) continue;
    ranks.push_back(passes_of(*node->training(), warmup_ - kSimStart));
  }
  observe::KnownFigure figure{.figure = "training_rate", .filler = {}, .wanted = goal_.training};
  auto estimate = rate_over(ranks, goal_.confidence);
  if (!estimate && done_in(ranks) == 0 && scenario_.iteration > Duration{}) {
    estimate = unseen(0, 1, now - warmup_);
    estimate->value = 1 / to_seconds(scenario_.iteration);
  }
  add(std::move(figure), estimate);
}

std::vector<FillerInstance*> PrecisionWatch::admitted(std::uint32_t filler) const {
  std::vector<FillerInstance*> found = instances_of(nodes_, filler);
  std::erase_if(found, [](const FillerInstance* instance) { return !instance->service; });
  return found;
}

// One that was refused everywhere does nothing, which is known.
void PrecisionWatch::look_at_filler(std::uint32_t filler, SimTime now) {
  if (admitted(filler).empty()) return;
  if (loaded_.config.fillers[filler].mode == observe::FillerMode::kOnline) {
    look_at_online(filler, now);
  } else {
    look_at_offline(filler, now);
  }
}

void PrecisionWatch::look_at_offline(std::uint32_t filler, SimTime now) {
  std::vector<std::vector<Progress>> places;
  for (const FillerInstance* instance : admitted(filler)) places.push_back(instance->course);
  observe::KnownFigure figure{.figure = "filler_rate",
                              .filler = loaded_.config.fillers[filler].name,
                              .wanted = goal_.fillers};
  auto estimate = rate_over(places, goal_.confidence);
  const double own =
      scenario_.profiles == nullptr ? 0 : (*scenario_.profiles)[filler].requests_per_s;
  if (!estimate && own > 0) {
    // A piece is a pass: what it serves, of those that were done.
    const double done = done_in(places);
    const double a_piece = std::max<double>(
        1, static_cast<double>(loaded_.config.fillers[filler].batching.requests_per_pass));
    Estimate few = unseen(done, a_piece, now - warmup_);
    few.value = own * static_cast<double>(places.size());
    if (done <= kRuleOfThree * a_piece) estimate = few;
  }
  if (estimate) {
    estimate->value = std::max(estimate->value, kLittle * own * static_cast<double>(places.size()));
  }
  add(std::move(figure), estimate);
}

void PrecisionWatch::look_at_online(std::uint32_t filler, SimTime now) {
  observe::KnownFigure figure{.figure = "latency_p95",
                              .filler = loaded_.config.fillers[filler].name,
                              .wanted = goal_.latency};
  const Requests requests = count(filler, now);
  figure.overloaded = is_overloaded(filler, requests, now);
  if (scenario_.policy == nullptr) {  // alone: only whether it keeps up is asked
    settled_ = settled_ && now - warmup_ >= kAlone * goal_.least &&
               (figure.overloaded || observe::keeps_up(requests.counts, goal_.fillers));
    return;
  }
  std::vector<observe::Samples> places;
  for (const FillerInstance* instance : admitted(filler)) {
    places.emplace_back(instance->latency.samples());
  }
  add(std::move(figure),
      observe::percentile_by_batches(places, kLatencyPercent, goal_.confidence));
}

PrecisionWatch::Requests PrecisionWatch::count(std::uint32_t filler, SimTime now) const {
  Requests requests;
  requests.backlog = count_requests({loaded_, nodes_, warmup_, now}, filler, requests.counts);
  return requests;
}

// Again at twice the length: not by chance.
bool PrecisionWatch::is_overloaded(std::uint32_t filler, const Requests& requests, SimTime now) {
  const Duration window = now - warmup_;
  std::optional<Duration>& since = overloaded_since_[filler];
  if (!observe::is_overloaded(requests.counts, requests.backlog, window)) {
    since.reset();
    return false;
  }
  if (!since) since = window;
  return window >= 2 * *since;
}

}  // namespace bubblesim::run
