// The service against queueing theory: Poisson arrivals, one server, first come first served.
//
// Pollaczek and Khinchine: with load r and service times of mean s and coefficient of variation c,
// a request waits r s (1 + c^2) / (2 (1 - r)) on average; c = 0 is M/D/1, c = 1 is M/M/1. The mean
// of 400,000 requests must lie within the 99.9 % confidence interval of 20 batch means (Student's
// t with 19 degrees of freedom: 3.883), and that interval within 5 % of the theory. Seeds are
// fixed: the test either always passes or never does.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "sim/workload/arrivals/arrival_process.hpp"
#include "sim/workload/service.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

constexpr double kServiceSeconds = 10e-6;
constexpr std::size_t kRequests = 400'000;
constexpr std::size_t kBatches = 20;
constexpr double kStudent = 3.883;

/// One kernel of 10 us on a device without latencies. The length of the pass is drawn at the mark
/// of its iteration.
program::Program one_kernel() {
  return ProgramMaker().iteration(0).kernel(0, 10).wait_stream(0, 0).program();
}

/// Lets requests arrive and collects how long each waited.
class Queue final : public engine::EventHandler, public ServiceListener, public RunObserver {
 public:
  Queue(double load, double cv) : program_(one_kernel()) {
    RunSetup run;
    run.repeat = Repeat::kOnePass;
    run.perturbation = {.jitter_cv = cv, .seed = 3};
    run.observer = this;
    run_.emplace(engine_, gpu_, program_, run);
    service_.emplace(engine_, *run_, program::Batching{}, *this);
    arrivals_ = *make_arrivals(PoissonArrivals{load / kServiceSeconds}, {17, "arrivals"});
    entity_ = engine_.add_entity(*this, engine::Phase::kArrival);
    engine_.schedule(entity_, *arrivals_->next());
    engine_.run_until();
  }

  void on_event(SimTime now) override {
    service_->arrive(arrived_++, now);
    if (arrived_ < kRequests) engine_.schedule(entity_, *arrivals_->next());
  }
  void on_pass_finished(ProgramRun&, SimTime now) override { service_->pass_finished(now); }
  void on_served(const ServedRequest& request) override {
    EXPECT_EQ(request.number, waits.size());
    waits.push_back(to_seconds(request.start - request.arrival));
    served_ += request.end - request.start;
  }
  void on_batch(std::uint64_t requests, SimTime) override { EXPECT_EQ(requests, 1U); }

  [[nodiscard]] double busy_share() const {
    return to_seconds(served_) / to_seconds(engine_.now() - kSimStart);
  }

  std::vector<double> waits;

 private:
  engine::Engine engine_;
  gpu::Gpu gpu_{engine_, plain_gpu(), gpu::SharingSetup{}};
  program::Program program_;
  std::optional<ProgramRun> run_;
  std::optional<Service> service_;
  std::unique_ptr<ArrivalProcess> arrivals_;
  engine::EntityId entity_;
  std::uint64_t arrived_ = 0;
  Duration served_{};
};

/// Mean and half-width of its confidence interval.
struct Estimate {
  double mean = 0;
  double half_width = 0;
};

Estimate batch_means(const std::vector<double>& values) {
  const std::size_t size = values.size() / kBatches;
  std::vector<double> means(kBatches);
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    for (std::size_t i = 0; i < size; ++i) means[batch] += values[batch * size + i];
    means[batch] /= static_cast<double>(size);
  }
  Estimate result;
  for (const double mean : means) result.mean += mean / kBatches;
  double squares = 0;
  for (const double mean : means) squares += (mean - result.mean) * (mean - result.mean);
  result.half_width = kStudent * std::sqrt(squares / (kBatches - 1) / kBatches);
  return result;
}

void expect_theory(double load, double cv) {
  const Queue queue(load, cv);
  ASSERT_EQ(queue.waits.size(), kRequests);
  const Estimate wait = batch_means(queue.waits);
  const double theory = load * kServiceSeconds * (1 + cv * cv) / (2 * (1 - load));
  EXPECT_NEAR(wait.mean, theory, wait.half_width) << "load " << load << ", cv " << cv;
  EXPECT_LT(wait.half_width, 0.05 * theory) << "too wide to say anything";
  EXPECT_NEAR(queue.busy_share(), load, 0.02 * load);
}

TEST(Queueing, MD1) {
  expect_theory(0.3, 0);
  expect_theory(0.6, 0);
}

TEST(Queueing, MG1) { expect_theory(0.5, 0.5); }

TEST(Queueing, MM1) {
  expect_theory(0.3, 1);
  expect_theory(0.6, 1);
}

}  // namespace
}  // namespace bubblesim::workload
