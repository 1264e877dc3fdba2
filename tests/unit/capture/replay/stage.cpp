#include "tests/unit/capture/replay/stage.hpp"

namespace bubblesim::capture::testing {

void StubGate::note(const std::string& what) {
  heard.push_back(std::to_string(in_us(clock_.now() - origin_)) + " " + what);
}

Passage StubGate::launch(policy::LaunchInfo launch) {
  launch.launch = ++launches_;
  launched.push_back(launch);
  const auto hold = held_until.find(launches_);
  if (hold == held_until.end()) return {};
  const HostTime asked = clock_.now();
  clock_.sleep_until(origin_ + hold->second);
  return {clock_.now() - asked, true, false};
}

void StubGate::completed(program::WorkKind, std::uint64_t launch, std::uint32_t) {
  note("completed " + std::to_string(launch));
}

void StubGate::iteration_ended(Duration length) {
  note("iteration of " + std::to_string(in_us(length)));
}

void StubGate::bubble_began(const policy::BubbleInfo& bubble) {
  note("bubble of " + std::to_string(in_us(bubble.expected)));
}

Stage::Stage() {
  auto made = make_turn_clock();
  if (!made) return;
  clock_ = std::move(*made);
  part_ = clock_->join(Turn::kControl);
  device_ = std::make_unique<QueueDevice>(*clock_);
}

StubGate& Stage::gate() {
  if (!gate_) gate_ = std::make_unique<StubGate>(*clock_);
  return *gate_;
}

ReplayEnd Stage::run(const JobPlan& plan, std::optional<Duration> stop) {
  JobRunner runner(plan, {clock_.get(), device_.get(), gate_.get(), {}, [this] {
                            ++iterations_told;
                          }});
  if (auto prepared = runner.prepare({}); !prepared) return {{}, prepared.error()};
  const HostTime origin = clock_->now();
  Crew crew(*clock_);
  if (stop) {
    crew.start(Turn::kControl, [&, stop] {
      clock_->sleep_until(origin + *stop);
      runner.request_stop();
    });
  }
  ReplayEnd end = runner.run(origin);
  crew.wait();
  return end;
}

std::vector<std::string> timeline(const JobRecord& record) {
  std::vector<std::string> lines;
  for (const OperationRecord& op : record.operations) {
    lines.push_back(std::to_string(op.op) + ": called " + std::to_string(in_us(op.called)) +
                    ", runs " + std::to_string(in_us(op.start)) + " to " +
                    std::to_string(in_us(op.end)) + ", returned " +
                    std::to_string(in_us(op.returned)));
  }
  return lines;
}

std::int64_t in_us(Duration instant) {
  return std::chrono::duration_cast<std::chrono::microseconds>(instant).count();
}

std::vector<std::int64_t> in_us(const std::vector<Duration>& instants) {
  std::vector<std::int64_t> out;
  for (const Duration instant : instants) out.push_back(in_us(instant));
  return out;
}

}  // namespace bubblesim::capture::testing
