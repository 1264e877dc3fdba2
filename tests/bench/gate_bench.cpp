// The gate on the wall clock: what a launch costs that tells, and one that asks.
#include <benchmark/benchmark.h>
#include <thread>
#include <utility>

#include "capture/clock/host_clock.hpp"
#include "capture/policy_host/policy_host.hpp"

namespace bubblesim::capture {
namespace {

class AdmitAll final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {};
  }
};

/// A host in a thread of its own, and a client of it.
class Gate {
 public:
  Gate(GateMode mode, Duration spin) : clock_(wall_clock(spin)) {
    PolicyHostSetup setup{&spec_, &policy_, {}, clock_->now()};
    setup.clients.resize(1);
    setup.clients[0].mode = mode;
    host_ = *PolicyHost::make(*clock_, std::move(setup));
    client_ = *GateClient::open(host_->gate_name(), ClientId{0}, *clock_);
  }
  void start() {
    thread_ = std::thread([this] { host_->run(); });
  }
  ~Gate() {
    host_->stop();
    if (thread_.joinable()) thread_.join();
  }
  GateClient& client() { return *client_; }
  PolicyHost& host() { return *host_; }
  HostClock& clock() { return *clock_; }

 private:
  std::unique_ptr<HostClock> clock_;
  AdmitAll policy_;
  policy::PolicySpec spec_;
  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<GateClient> client_;
  std::thread thread_;
};

policy::LaunchInfo kernel() {
  policy::LaunchInfo info;
  info.blocks = 100;
  return info;
}

void report(benchmark::State& state, const SpanHistogram& spans) {
  const SpanSummary summary = spans.summary();
  state.counters["p50_ns"] = static_cast<double>(summary.p50.count());
  state.counters["p95_ns"] = static_cast<double>(summary.p95.count());
  state.counters["p99_ns"] = static_cast<double>(summary.p99.count());
}

/// From the question to the thread's going on. Argument: the clock's spin, us; 0: futexes only.
void ask(benchmark::State& state) {
  Gate gate(GateMode::kAsk, std::chrono::microseconds(state.range(0)));
  gate.start();
  SpanHistogram spans;
  for (auto _ : state) spans.add(gate.client().launch(kernel()).asked);
  report(state, spans);
  state.counters["ungated"] = static_cast<double>(gate.client().counts().ungated);
}
BENCHMARK(ask)->Arg(50)->Arg(0)->UseRealTime();

/// Launches 20 us apart, to a host that takes what it is told: only the calls are timed.
void launch_in_turn(benchmark::State& state, Gate& gate) {
  gate.start();
  SpanHistogram spans;
  for (auto _ : state) {
    gate.clock().sleep_until(gate.clock().now() + std::chrono::microseconds(20));
    const HostTime began = gate.clock().now();
    gate.client().launch(kernel());
    const Duration took = gate.clock().now() - began;
    spans.add(took);
    state.SetIterationTime(to_seconds(took));
  }
  report(state, spans);
}

void tell(benchmark::State& state) {
  Gate gate(GateMode::kTell, std::chrono::microseconds(state.range(0)));
  launch_in_turn(state, gate);
  state.counters["dropped"] = static_cast<double>(gate.client().counts().messages_dropped);
}
BENCHMARK(tell)->Arg(50)->Arg(0)->UseManualTime();

/// Of a policy that does not look at launches.
void pass(benchmark::State& state) {
  Gate gate(GateMode::kPass, std::chrono::microseconds(50));
  launch_in_turn(state, gate);
}
BENCHMARK(pass)->UseManualTime();

/// As many as the ring holds, one after the other, to a host that does not run.
void tell_in_bursts(benchmark::State& state) {
  constexpr int kBurst = 1000;
  for (auto _ : state) {
    state.PauseTiming();
    {
      Gate gate(GateMode::kTell, std::chrono::microseconds(50));
      gate.client().launch(kernel());
      state.ResumeTiming();
      for (int i = 0; i < kBurst; ++i) gate.client().launch(kernel());
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kBurst);
}
BENCHMARK(tell_in_bursts);

}  // namespace
}  // namespace bubblesim::capture
