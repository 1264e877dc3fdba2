// One scripted scenario, driven by sim/policy/testing's driver and through the gate by threads on a
// clock of turns: every launch passes at the same instant.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <ostream>
#include <tuple>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"
#include "policies/builtin.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/policy/session/start.hpp"
#include "sim/policy/testing/fake_driver.hpp"
#include "tests/bytes.hpp"
#include "tests/fault.hpp"

namespace bubblesim::testing {

std::ostream& operator<<(std::ostream& out, const Passed& passed) {
  return out << to_ns(passed.at) << " ns " << passed.client.value << "." << passed.launch;
}

namespace {

using namespace policy;
using namespace std::chrono_literals;
using capture::HostTime, capture::Turn;

/// The device of one client: operations one after the other; tells of each end.
class OneStream {
 public:
  OneStream(capture::HostClock& clock, capture::GateClient& client)
      : clock_(clock), client_(client) {
    bell_.id = clock.bell_id();
  }
  void add(const LaunchInfo& info, std::uint64_t launch, Duration length) {
    const HostTime start = std::max(clock_.now(), last_end_);
    last_end_ = start + length;
    running_.push_back({last_end_, info.kind, launch});
    clock_.ring(bell_);
  }
  void run() {
    while (!done_) {
      const std::uint32_t seen = bell_.rings;
      while (!running_.empty() && running_.front().end <= clock_.now()) {
        client_.completed(running_.front().kind, running_.front().launch);
        running_.pop_front();
      }
      clock_.wait(bell_, seen, running_.empty() ? HostTime::max() : running_.front().end);
    }
  }
  void stop() {
    done_ = true;
    clock_.ring(bell_);
  }

 private:
  struct Running {
    HostTime end{};
    WorkKind kind{};
    std::uint64_t launch = 0;
  };
  capture::HostClock& clock_;
  capture::GateClient& client_;
  capture::Bell bell_;
  std::deque<Running> running_;
  HostTime last_end_{};
  bool done_ = false;
};

class GatedRun {
 public:
  GatedRun(const PolicySpec& spec, const std::vector<std::string>& given, const Scenario& scenario)
      : scenario_(scenario),
        clock_(*capture::make_turn_clock()),
        part_(clock_->join(Turn::kControl)) {
    std::vector<GivenParameter> parameters;
    for (std::string_view text : given) {
      const auto equals = text.find('=');
      parameters.push_back({text.substr(0, equals), std::string(text.substr(equals + 1))});
    }
    policy_ = spec.make(*check_parameters(spec, parameters, "", ""));
    const std::vector<ClientInfo> infos = client_infos();
    capture::PolicyHostSetup setup{&spec, policy_.get(), {}, HostTime{}};
    for (const ClientInfo& info : infos) {
      const bool tells = info.id == ClientId{0};
      setup.clients.push_back(
          {info.memory, tells ? capture::GateMode::kTell : capture::GateMode::kAsk});
    }
    setup.sharing = must(start_policy(spec, *policy_, scenario.gpu, infos)).sharing.mode;
    host_ = *capture::PolicyHost::make(*clock_, std::move(setup));
  }

  std::vector<Passed> run() {
    capture::Crew crew(*clock_);
    crew.start(Turn::kPolicy, [this] { host_->run(); });
    for (std::uint32_t id = 0; id <= scenario_.fillers.size(); ++id) {
      clients_.push_back(*capture::GateClient::open(host_->gate_name(), ClientId{id}, *clock_));
      devices_.push_back(std::make_unique<OneStream>(*clock_, *clients_.back()));
    }
    start_threads(crew);
    clock_->sleep_until(HostTime{scenario_.horizon});
    done_ = true;
    host_->stop();
    for (auto& device : devices_) device->stop();
    crew.wait();
    EXPECT_FALSE(host_->fault()) << host_->fault()->text();
    return passed_;
  }

 private:
  std::vector<ClientInfo> client_infos() const {
    std::vector<ClientInfo> infos{{ClientId{0}, scenario_.training_role, "training",
                                   scenario_.training_memory,
                                   scenario_.training_memory != Bytes{}}};
    infos[0].ranks = scenario_.training_ranks;
    for (const Filler& filler : scenario_.fillers) {
      const ClientId id{static_cast<std::uint32_t>(infos.size())};
      infos.push_back({id, filler.role, "filler", filler.memory, filler.memory_known});
    }
    return infos;
  }

  void start_threads(capture::Crew& crew) {
    crew.start(Turn::kDevice, [this] { mark(); });
    for (auto& device : devices_) crew.start(Turn::kDevice, [&device] { device->run(); });
    crew.start(Turn::kTraining, [this] {
      for (const Call& call : scenario_.training) {
        clock_->sleep_until(HostTime{call.at});
        launch(0, call);
      }
    });
    for (std::uint32_t id = 1; id <= scenario_.fillers.size(); ++id) {
      crew.start(Turn::kFiller, [this, id] { fill(id); });
    }
  }

  void fill(std::uint32_t id) {
    const Filler& filler = scenario_.fillers[id - 1];
    for (std::uint64_t i = 0; i < filler.launches && !done_; ++i) {
      launch(id, filler.kernels[i % filler.kernels.size()]);
      clock_->sleep_until(clock_->now() + filler.gap);
    }
  }

  void launch(std::uint32_t id, const Call& call) {
    if (done_) return;
    LaunchInfo info;
    info.kind = call.kind;
    info.blocks = call.blocks;
    info.threads_per_block = 256;
    info.profiled = call.length;  // the host hides what the policy did not ask for
    info.bound = call.bound;
    info.sm_blocks = call.sm_blocks;
    if (clients_[id]->launch(info).gate_open) return;
    const std::uint64_t number = clients_[id]->last_launch();
    passed_.push_back({clock_->now().time_since_epoch(), ClientId{id}, number, call.blocks});
    devices_[id]->add(info, number, call.length);
  }

  /// Iteration ends and bubbles, by time; at one time in the order of the fake driver.
  void mark() {
    using Mark = std::tuple<Duration, int, std::size_t>;
    std::vector<Mark> marks;
    for (std::size_t i = 0; i < scenario_.iteration_ends.size(); ++i) {
      marks.emplace_back(scenario_.iteration_ends[i], 0, i);
    }
    for (std::size_t i = 0; i < scenario_.bubbles.size(); ++i) {
      marks.emplace_back(scenario_.bubbles[i].end, 1, i);
      marks.emplace_back(scenario_.bubbles[i].begin, 2, i);
    }
    std::ranges::sort(marks);
    for (const auto& [when, kind, i] : marks) {
      clock_->sleep_until(HostTime{std::min(when, scenario_.horizon)});
      if (kind == 0) {
        const Duration before = i == 0 ? Duration{} : scenario_.iteration_ends[i - 1];
        clients_[0]->iteration_ended(scenario_.iteration_ends[i] - before);
      } else if (kind == 1) {
        clients_[0]->bubble_ended();
      } else {
        clients_[0]->bubble_began(scenario_.bubbles[i].info);
      }
    }
  }

  const Scenario& scenario_;
  std::unique_ptr<capture::HostClock> clock_;
  std::unique_ptr<capture::ClockPart> part_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<capture::PolicyHost> host_;
  std::vector<std::unique_ptr<capture::GateClient>> clients_;
  std::vector<std::unique_ptr<OneStream>> devices_;
  std::vector<Passed> passed_;
  bool done_ = false;
};

/// The two runs pass the same launches at the same instants; `least` of the filler's, so that the
/// scenario is worth it.
void expect_same(const PolicySpec& spec, const std::vector<std::string>& given,
                 const Scenario& scenario, std::size_t least) {
  std::vector<Passed> simulated = drive(spec, given, scenario).passed;
  std::vector<Passed> gated = GatedRun(spec, given, scenario).run();
  const auto key = [](const Passed& passed) {
    return std::tuple(passed.at, passed.client, passed.launch);
  };
  std::ranges::sort(simulated, {}, key);
  std::ranges::sort(gated, {}, key);
  EXPECT_THAT(gated, ::testing::ElementsAreArray(simulated));
  EXPECT_GE(std::ranges::count(gated, ClientId{1}, &Passed::client), least);
}

Scenario scenario(Duration horizon, std::vector<Call> kernels, Duration gap) {
  Scenario result;
  result.gpu = {"GPU", 100, 2, gib(80), 1ms, 50us};
  result.training_memory = gib(40);
  result.fillers = {{Role::kOffline, std::move(kernels), 100'000, gap, gib(10), true}};
  result.horizon = horizon;
  return result;
}

Call kernel(std::uint64_t blocks, Duration length) {
  return {{}, WorkKind::kKernel, blocks, length};
}

void train(Scenario& scenario, Duration begin, Duration every, int count, std::uint64_t blocks,
           Duration length = 1us) {
  for (int i = 0; i < count; ++i) {
    scenario.training.push_back({begin + every * i, WorkKind::kKernel, blocks, length});
  }
}

/// Reports every 100 ms, windows of 10 ms: one kernel a window in the profile, then 4, 6, 8, 12.
TEST(SameAsFakeDriver, TgsFindsTheFillerARate) {
  Scenario steady = scenario(1s, {kernel(30, 1us)}, 1us);
  train(steady, 0ms, 1ms, 1000, 10);
  expect_same(policies::tgs_spec(),
              {"report_period=100ms", "window=10ms", "poll=1ms", "profile_longest=5",
               "initial_limit=100", "idle_blocks=10"},
              steady, 300);
}

/// Held at 0 and at 3 ms, threads look every 10 ms.
TEST(SameAsFakeDriver, TgsLetsHeldThreadsLook) {
  Scenario late = scenario(201ms, {kernel(7, 1us)}, 3ms);
  train(late, 0ms, 1ms, 200, 100);
  late.fillers.push_back(late.fillers[0]);
  late.fillers[0].memory = late.fillers[1].memory = gib(5);
  expect_same(policies::tgs_spec(), {}, late, 2);
}

/// Kernels are packed into bubbles by their profiled length; the longest bubble is known when the
/// iteration has ended.
TEST(SameAsFakeDriver, PipefillPacksBubbles) {
  Scenario packed = scenario(60ms, {kernel(1, 1ms), kernel(1, 2ms), kernel(1, 3ms)}, 20us);
  packed.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}, {32ms, 47ms, {15ms, Bytes{}, true}}};
  packed.iteration_ends = {20ms, 50ms};
  train(packed, 0ms, 500us, 3, 100, 100us);
  expect_same(policies::pipefill_spec(), {"main_job=takes_turns"}, packed, 6);
}

TEST(SameAsFakeDriver, PipefillRunsALongKernelAlone) {
  Scenario single = scenario(60ms, {kernel(1, 8ms)}, 0us);
  single.bubbles = {{2ms, 12ms, {10ms, Bytes{}, true}}, {32ms, 42ms, {10ms, Bytes{}, true}}};
  single.iteration_ends = {20ms, 50ms};
  expect_same(policies::pipefill_spec(), {"main_job=takes_turns"}, single, 1);
}

}  // namespace
}  // namespace bubblesim::testing
