#include "sim/validate/pair_run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "sim/base/nearest_rank.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/schedule/gpu_plan.hpp"
#include "sim/schedule/policy_driver.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::validate {
namespace {

// Passes on what the policy may see, and keeps what is measured of one client.
class ClientWatch : public workload::RunObserver {
 public:
  void connect(schedule::PolicyDriver* driver) { driver_ = driver; }

  void on_op_started(workload::ProgramRun& run, std::uint32_t op, SimTime now) override {
    if (driver_ != nullptr) driver_->op_started(run, op, now);
  }
  void on_op_finished(const workload::OpRecord& record) override {
    if (driver_ != nullptr) driver_->op_finished(record);
  }

 protected:
  schedule::PolicyDriver* driver_ = nullptr;
};

class TrainingWatch final : public ClientWatch {
 public:
  void on_iteration(workload::ProgramRun& run, std::uint32_t index, SimTime now) override {
    if (index == 0) return;
    if (driver_ != nullptr) driver_->iteration_ended(run, now - last_, now);
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
class ServiceLoop final : public ClientWatch, public engine::EventHandler {
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
    if (driver_ != nullptr) driver_->iteration_ended(run, now - started_, now);
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

// Everything of one run, in the order in which it must be made and torn down.
class PairRun {
 public:
  explicit PairRun(const PairSetup& setup) : setup_(setup), service_(engine_, setup.arrivals) {}

  Result<PairFigures> run() {
    BUBBLESIM_RETURN_IF_ERROR(build());
    if (training_run_) training_run_->start_pass(kSimStart);
    if (driver_) driver_->start();
    if (inference_run_) service_.begin(*inference_run_);
    engine_.run_until(kSimStart + setup_.length);
    if (driver_ && driver_->session().fault()) {
      return tl::unexpected<Error>(*driver_->session().fault());
    };
    PairFigures out;
    out.latencies = service_.latencies();
    out.served = out.latencies.size();
    out.iterations = training_.count();
    out.iterations_per_s = training_.rate();
    summarise(out, setup_.latencies_from);
    return out;
  }

 private:
  Result<void> build() {
    schedule::GpuPlan plan;
    const std::vector<policy::ClientInfo> infos = client_infos();
    if (setup_.policy != nullptr) {
      policy_ = setup_.policy->make(*setup_.parameters);
      BUBBLESIM_ASSIGN_OR_RETURN(
          plan, schedule::plan_gpu(*setup_.policy, *policy_, *setup_.gpu, infos));
    } else {
      plan = schedule::plan_without_policy(infos);
    }
    if (!plan.decided.admissions[1].admitted) {
      return fail("the training job is not admitted: " + plan.decided.admissions[1].reason);
    }
    gpu_ = std::make_unique<gpu::Gpu>(engine_, *setup_.gpu, plan.sharing);
    if (policy_) {
      driver_ = std::make_unique<schedule::PolicyDriver>(engine_, *gpu_, *setup_.policy, *policy_,
                                                         nullptr, nullptr);
    }
    inference_run_ = add(setup_.inference, plan.clients[0], workload::Repeat::kOnePass, service_);
    training_run_ = add(setup_.training, plan.clients[1], workload::Repeat::kLoop, training_);
    return {};
  }

  std::unique_ptr<workload::ProgramRun> add(const program::Program* program,
                                            const gpu::ClientSetup& client,
                                            workload::Repeat repeat, ClientWatch& watch) {
    std::unique_ptr<workload::ProgramRun> out;
    if (program != nullptr) {
      workload::RunSetup setup;
      setup.client = client;
      setup.repeat = repeat;
      setup.gate = driver_.get();
      setup.observer = &watch;
      watch.connect(driver_.get());
      out = std::make_unique<workload::ProgramRun>(engine_, *gpu_, *program, setup);
    }
    if (driver_) driver_->attach(out.get());
    return out;
  }

  const PairSetup& setup_;
  engine::Engine engine_;
  ServiceLoop service_;
  TrainingWatch training_;
  std::unique_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<schedule::PolicyDriver> driver_;
  std::unique_ptr<workload::ProgramRun> inference_run_;
  std::unique_ptr<workload::ProgramRun> training_run_;
};

}  // namespace

// In unit mean rate over [0, 1], the expected arrivals until x are (1 - r) x + r x^2; arrivals are
// where this reaches a random point of each n-th.
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
  return out;
}

Result<PairFigures> run_pair(const PairSetup& setup) { return PairRun(setup).run(); }

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
