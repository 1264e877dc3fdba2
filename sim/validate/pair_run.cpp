#include "sim/validate/pair_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/nearest_rank.hpp"
#include "sim/schedule/shared_gpu.hpp"
#include "sim/workload/machine.hpp"

namespace bubblesim::validate {
namespace {

class TrainingWatch final : public schedule::ClientWatch {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    if (index == 0) return;
    tell_iteration(run, now - last_, now);
    last_ = now;
    ends_.push_back(now);
  }

  [[nodiscard]] std::uint64_t count() const { return ends_.size(); }

  // From the first end to the last one: whole iterations only.
  [[nodiscard]] double rate() const {
    if (ends_.empty()) return 0;
    if (ends_.size() == 1) return 1 / to_seconds(ends_.front() - kSimStart);
    return static_cast<double>(ends_.size() - 1) / to_seconds(ends_.back() - ends_.front());
  }

 private:
  SimTime last_ = kSimStart;
  std::vector<SimTime> ends_;
};

// The loop of the service.
class ServiceLoop final : public schedule::ClientWatch, public engine::EventHandler {
 public:
  ServiceLoop(engine::Engine& engine, const std::vector<SimTime>& arrivals)
      : engine_(engine), arrivals_(arrivals),
        entity_(engine.add_entity(*this, engine::Phase::kArrival)) {}

  void begin(workload::ProgramRun& run) {
    run_ = &run;
    await(kSimStart);
  }

  void on_event(SimTime now) override { start(now); }

  void on_pass_finished(workload::ProgramRun& run, SimTime now) override {
    tell_iteration(run, now - started_, now);
    latencies_.push_back(now - started_);
    await(now);
  }

  [[nodiscard]] const std::vector<Duration>& latencies() const { return latencies_; }

 private:
  void await(SimTime now) {
    if (next_ == arrivals_.size()) return;
    engine_.schedule(entity_, std::max(now, arrivals_[next_]));
  }
  void start(SimTime now) {
    ++next_;
    started_ = now;
    run_->start_pass(now);
  }

  engine::Engine& engine_;
  const std::vector<SimTime>& arrivals_;
  engine::EntityId entity_;
  workload::ProgramRun* run_ = nullptr;
  std::size_t next_ = 0;
  SimTime started_{};
  std::vector<Duration> latencies_;
};

std::vector<policy::ClientInfo> client_infos() {
  policy::ClientInfo service;
  service.role = policy::Role::kOnline;
  service.name = "inference";
  policy::ClientInfo training;
  training.id = ClientId{1};
  training.role = policy::Role::kTraining;
  training.name = "training";
  return {service, training};
}

double percentile_ms(const std::vector<Duration>& sorted, double percent) {
  return 1e3 * to_seconds(percentile_of(sorted, percent));
}

void summarise(PairFigures& out, double from) {
  const auto skipped = static_cast<std::size_t>(from * static_cast<double>(out.latencies.size()));
  std::vector<Duration> kept(out.latencies.begin() + static_cast<std::ptrdiff_t>(skipped),
                             out.latencies.end());
  if (kept.empty()) return;
  std::sort(kept.begin(), kept.end());
  const Duration sum = std::accumulate(kept.begin(), kept.end(), Duration{});
  out.average_ms = 1e3 * to_seconds(sum) / static_cast<double>(kept.size());
  out.p90_ms = percentile_ms(kept, 90);
  out.p95_ms = percentile_ms(kept, 95);
  out.p99_ms = percentile_ms(kept, 99);
}

}  // namespace

// In unit mean rate over [0, 1], the expected arrivals until x are (1 - r) x + r x^2; arrivals are
// where this reaches a random point of each n-th.
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
  const double r = setting.ramp;
  const double slow = 1 - r;
  std::vector<SimTime> out;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double sum = (static_cast<double>(i) + random.uniform()) / static_cast<double>(count);
    const double x = r <= 0 ? sum : (std::sqrt(slow * slow + 4 * r * sum) - slow) / (2 * r);
    out.push_back(kSimStart + scale(length, x));
  }
  if (setting.burst > Duration::zero()) gather(out, setting.burst, length, random);
  return out;
}

Result<PairFigures> run_pair(const PairSetup& setup) {
  workload::Machine machine(*setup.gpu);
  ServiceLoop service(machine.engine(), setup.arrivals);
  TrainingWatch watch;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto gpu,
      schedule::SharedGpu::make(machine, {setup.policy, setup.parameters}, client_infos()));
  const policy::Admission& admission = gpu->decided().admissions[1];
  if (!admission.admitted) return fail("the training job is not admitted: " + admission.reason);
  workload::RunSetup request;
  request.repeat = workload::Repeat::kOnePass;
  workload::ProgramRun* inference = gpu->add_client(setup.inference, request, &service);
  workload::ProgramRun* training = gpu->add_client(setup.training, {}, &watch);
  if (training != nullptr) training->start_pass(kSimStart);
  gpu->start();
  if (inference != nullptr) service.begin(*inference);
  machine.conductor().run_until(kSimStart + setup.length);
  if (auto fault = gpu->fault()) return tl::unexpected<Error>(*std::move(fault));
  PairFigures out;
  out.latencies = service.latencies();
  out.served = out.latencies.size();
  out.iterations = watch.count();
  out.iterations_per_s = watch.rate();
  summarise(out, setup.latencies_from);
  return out;
}

Result<Duration> solo_latency(const hardware::GpuSpec& gpu, const program::Program& inference) {
  constexpr std::size_t kRequests = 4;
  PairSetup setup;
  setup.gpu = &gpu;
  setup.inference = &inference;
  setup.arrivals.assign(kRequests, kSimStart);
  setup.length = std::chrono::hours(1);
  setup.latencies_from = 0;
  BUBBLESIM_ASSIGN_OR_RETURN(const PairFigures figures, run_pair(setup));
  if (figures.served != kRequests) return fail("a request alone does not end within an hour");
  Duration sum{};
  for (const Duration latency : figures.latencies) sum += latency;
  return sum / static_cast<std::int64_t>(kRequests);
}

}  // namespace bubblesim::validate
