// An inference service: queue, batches, passes. Times in us.
#include "sim/workload/service.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

struct Served {
  std::uint64_t number = 0;
  std::int64_t arrival = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  friend bool operator==(const Served&, const Served&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Served& served) {
    return out << "{" << served.number << ": " << served.arrival << " " << served.start << " "
               << served.end << "}";
  }
};

/// A service before one kernel of 10, whose launch needs no time.
class ServiceTest : public testing::Test, public ServiceListener, public RunObserver {
 protected:
  void make(const program::Batching& setup) {
    program_ = ProgramMaker().kernel(0, 10).wait_stream(0, 0).end().program();
    RunSetup run;
    run.repeat = Repeat::kOnePass;
    run.observer = this;
    run_.emplace(engine_, gpu_, program_, run);
    service_.emplace(engine_, *run_, setup, *this);
  }
  void arrive_at(const std::vector<std::int64_t>& times) {
    std::uint64_t number = 0;
    for (const std::int64_t at : times) {
      script_.at(at * 1000, [this, at, number] { service_->arrive(number, kSimStart + us(at)); });
      ++number;
    }
  }
  void run(std::int64_t until = 1'000'000) { engine_.run_until(kSimStart + us(until)); }
  void serve(const program::Batching& setup, const std::vector<std::int64_t>& arrivals,
             std::int64_t until = 1'000'000) {
    make(setup);
    arrive_at(arrivals);
    run(until);
  }

  void on_pass_finished(ProgramRun&, SimTime now) override { service_->pass_finished(now); }
  void on_served(const ServedRequest& request) override {
    served_.push_back({request.number, microseconds(request.arrival), microseconds(request.start),
                       microseconds(request.end)});
  }
  void on_batch(std::uint64_t requests, SimTime now) override {
    batches_.emplace_back(requests, microseconds(now));
  }

  using Batches = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  engine::Engine engine_;
  gpu::Gpu gpu_{engine_, plain_gpu(), gpu::SharingSetup{}};
  gpu::Script script_{engine_};
  program::Program program_;
  std::optional<ProgramRun> run_;
  std::optional<Service> service_;
  std::vector<Served> served_;
  Batches batches_;
};

// Arrivals at 5, 7 and 30: 5 to 15; the second waits until 15, then 25; the third finds it idle.
TEST_F(ServiceTest, RequestsAreServedOneAfterAnotherInOrderOfArrival) {
  serve({}, {5, 7, 30});
  EXPECT_EQ(served_, (std::vector<Served>{{0, 5, 5, 15}, {1, 7, 15, 25}, {2, 30, 30, 40}}));
  EXPECT_EQ(batches_, (Batches{{1, 15}, {1, 25}, {1, 40}}));
}

// Batches of 2: the first two fill one at 7, the last waits from 30 until 30 + 100.
TEST_F(ServiceTest, ABatchStartsWhenItIsFullOrItsOldestHasWaitedLongEnough) {
  serve({.requests_per_pass = 2, .max_batch = 2, .max_wait = us(100)}, {5, 7, 30});
  EXPECT_EQ(served_, (std::vector<Served>{{0, 5, 7, 17}, {1, 7, 7, 17}, {2, 30, 130, 140}}));
}

// Without waiting, the first goes alone at 5; the three that came until 15 are a batch of 2 and 1.
TEST_F(ServiceTest, ABatchTakesWhatWaitsUpToItsSize) {
  serve({.requests_per_pass = 2, .max_batch = 2}, {5, 7, 8, 9});
  EXPECT_EQ(batches_, (Batches{{1, 15}, {2, 25}, {1, 35}}));
}

// The oldest came at 7 and may wait 20, until 27; the service is free at 16: the batch of one
// starts at 27, not 16 + 20.
TEST_F(ServiceTest, WaitingForABatchCountsFromTheArrival) {
  serve({.requests_per_pass = 2, .max_batch = 2, .max_wait = us(20)}, {5, 6, 7});
  EXPECT_EQ(served_, (std::vector<Served>{{0, 5, 6, 16}, {1, 6, 6, 16}, {2, 7, 27, 37}}));
}

// The request of 7 has waited its 3 when the service is free at 16: it starts at once.
TEST_F(ServiceTest, ARipeRequestStartsWhenTheServiceIsFree) {
  serve({.requests_per_pass = 2, .max_batch = 2, .max_wait = us(3)}, {5, 6, 7});
  EXPECT_EQ(served_.back(), (Served{2, 7, 16, 26}));
}

// A pass serves 4. Batches of 4, 8 and 1 take 1, 1 + 0.5 and 1 times 10.
TEST_F(ServiceTest, ABatchBeyondThePassCostsItsShare) {
  serve({.requests_per_pass = 4, .max_batch = 8, .max_wait = us(1), .batch_cost = 0.5},
        {0, 0, 0, 0, 50, 50, 50, 50, 50, 50, 50, 50, 100});
  EXPECT_EQ(batches_, (Batches{{4, 11}, {8, 65}, {1, 111}}));
}

// Five requests need two passes' worth: ceil(5 / 4) = 2.
TEST_F(ServiceTest, APartlyFilledPassCostsAWholeOne) {
  serve({.requests_per_pass = 4, .max_batch = 8, .max_wait = us(1), .batch_cost = 1},
        {0, 0, 0, 0, 0});
  EXPECT_EQ(batches_, (Batches{{5, 21}}));
}

TEST_F(ServiceTest, OfflineThereIsAlwaysANextBatch) {
  make({.requests_per_pass = 4, .max_batch = 4});
  service_->start_offline(kSimStart);
  run(35);
  EXPECT_EQ(batches_, (Batches{{4, 10}, {4, 20}, {4, 30}}));
  EXPECT_TRUE(service_->unfinished().empty());
}

// At 12, the request of 5 runs, those of 7 and 9 wait.
TEST_F(ServiceTest, WhatIsNotServedIsReportedOldestFirst) {
  serve({}, {5, 7, 9}, 12);
  EXPECT_EQ(service_->unfinished(),
            (std::vector<SimTime>{kSimStart + us(5), kSimStart + us(7), kSimStart + us(9)}));
  run();
  EXPECT_TRUE(service_->unfinished().empty());
}

// One that arrives in the instant in which the service becomes free joins the next batch.
TEST_F(ServiceTest, ARequestOfTheInstantOfACompletionIsServedNext) {
  serve({}, {0, 10});
  EXPECT_EQ(served_.back(), (Served{1, 10, 10, 20}));
}

}  // namespace
}  // namespace bubblesim::workload
