#include "capture/replay/fake/fake_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/replay/fake/fake_segment.hpp"
#include "sim/base/units.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::capture {
namespace {

HostTime host_time(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }
std::int64_t nanoseconds_of(HostTime time) { return time.time_since_epoch().count(); }

// Host threads learn of the device's actions before they, or a policy, act at that instant.
constexpr Turn kNews{1};

class FakeDevice final : public Device {
 public:
  FakeDevice(std::unique_ptr<FakeSegment> segment, FakeJobPart& part, HostClock& clock)
      : segment_(std::move(segment)), part_(part), clock_(clock) {}
  ~FakeDevice() override {
    if (plan_ != nullptr) end_launches();
    end_news();
  }

  [[nodiscard]] HostCosts host_costs() const override { return HostCosts::kPlanned; }
  [[nodiscard]] Result<void> prepare(const DeviceJob& job) override {
    plan_ = job.plan;
    if (plan_->program.ops.size() != part_.op_count ||
        plan_->program.stream_count != part_.stream_count) {
      return fail("the plan of " + plan_->name + " is not the one that the fake GPU knows: " +
                  std::to_string(plan_->program.ops.size()) + " operations, expected " +
                  std::to_string(part_.op_count));
    }
    FakeHeader& header = segment_->header();
    const std::uint64_t used = header.memory_used.fetch_add(plan_->memory.value);
    held_ = plan_->memory;
    if (header.memory > 0 && used + plan_->memory.value > header.memory) {
      const Bytes free{header.memory - std::min(used, header.memory)};
      return fail(plan_->name + " needs " + format_bytes(plan_->memory) +
                  " of device memory, free are " + format_bytes(free));
    }
    listener_ = job.listener;
    if (listener_ == nullptr) return {};
    part_.watched.store(1);
    news_ = std::make_unique<Crew>(clock_);
    news_->start(kNews, [this] { tell_news(); });
    return {};
  }
  void launch(const OpInstance& first, std::uint32_t count, double factor,
              Duration cost) override {
    const auto streams = part_.streams();
    const bool takes_place = cost > Duration{};
    wait_for_room(plan_->program.ops[first.op].stream, takes_place);
    if (part_.launches.full()) return;
    bool idle = false;
    for (std::uint32_t i = first.op; i < first.op + count; ++i) {
      FakeStream& stream = streams[plan_->program.ops[i].stream];
      idle = idle || stream.launched.load() == stream.ended.load();
      stream.launched.fetch_add(1);
    }
    if (takes_place) streams[plan_->program.ops[first.op].stream].queued.fetch_add(1);
    const HostTime at = clock_.now() + (plan_->device_lags ? cost : Duration{});
    part_.launches.push({first.op, count, first.pass, first.launch, nanoseconds_of(at), factor,
                         takes_place});
    // A busy stream is looked at again when its present operation ends.
    if (idle) clock_.ring(segment_->header().to_device);
  }
  void wait_op(std::uint32_t op, std::uint64_t pass) override {
    const HostTime since = clock_.now();
    wait(part_.ops()[op].ended, pass + 1, HostTime::max());
    return_from_wait(since);
  }
  void wait_stream(std::uint32_t stream) override {
    const HostTime since = clock_.now();
    const FakeStream& waited = part_.streams()[stream];
    wait(waited.ended, waited.launched.load(), HostTime::max());
    return_from_wait(since);
  }
  /// Waits for the operations that streams have at the wait's start; their order does not matter.
  void wait_all() override {
    const HostTime since = clock_.now();
    const auto streams = part_.streams();
    std::vector<std::uint64_t> launched;
    for (const FakeStream& stream : streams) launched.push_back(stream.launched.load());
    for (std::uint32_t i = 0; i < launched.size(); ++i) {
      wait(streams[i].ended, launched[i], HostTime::max());
    }
    return_from_wait(since);
  }
  [[nodiscard]] std::uint64_t resident_blocks(std::uint32_t op) const override {
    return part_.ops()[op].resident;
  }
  [[nodiscard]] std::uint64_t in_flight() const override {
    std::uint64_t total = 0;
    for (const FakeStream& stream : part_.streams()) {
      total += stream.launched.load() - stream.ended.load();
    }
    return total;
  }
  void end_launches() override {
    if (part_.no_more.exchange(1) == 0) clock_.ring(segment_->header().to_device);
    // After its process has ended, a GPU ends no operation any more.
    if (part_.quiet.load() != 0 || !has_ended(segment_->header().device)) return;
    part_.quiet.store(1);
    clock_.ring(part_.room);
    clock_.ring(part_.end);
  }
  [[nodiscard]] Result<void> close() override {
    end_launches();
    const auto streams = part_.streams();
    for (std::uint32_t i = 0; i < streams.size(); ++i) {
      for (std::uint64_t before = ended();; before = ended()) {
        const HostTime deadline = clock_.now() + kFakeNoAnswer;
        if (wait(streams[i].ended, streams[i].launched.load(), deadline)) break;
        if (ended() != before) continue;
        end_news();
        return fail("the fake device does not answer: " + std::to_string(in_flight()) +
                    " operations of " + plan_->name + " have not ended for " +
                    format_duration(kFakeNoAnswer));
      }
    }
    end_news();
    segment_->header().memory_used.fetch_sub(std::exchange(held_, Bytes{}).value);
    return {};
  }
  [[nodiscard]] CounterSet counters() const override {
    CounterSet counters;
    counters.add(kFakeNoticesLost, part_.notices_lost.load());
    return counters;
  }

 private:
  /// Waits until `ended` is `count`, or nothing will end any more. False: the deadline came first.
  bool wait(const std::atomic<std::uint64_t>& ended, std::uint64_t count, HostTime deadline) {
    part_.waiting.fetch_add(1);
    bool over = false;
    for (;;) {
      const std::uint32_t seen = part_.end.rings.load();
      over = part_.quiet.load() != 0 || ended.load() >= count;
      if (over || clock_.now() >= deadline) break;
      clock_.wait(part_.end, seen, deadline);
    }
    part_.waiting.fetch_sub(1);
    return over;
  }
  /// A thread that did not have to wait returns at once.
  void return_from_wait(HostTime since) {
    if (part_.sync == 0 || clock_.now() == since || part_.quiet.load() != 0) return;
    clock_.sleep_until(clock_.now() + Duration{part_.sync});
  }
  void wait_for_room(std::uint32_t stream, bool takes_place) {
    FakeStream& fake_stream = part_.streams()[stream];
    while (takes_place && fake_stream.queued.load() >= program::kLaunchQueueDepth &&
           part_.quiet.load() == 0) {
      wait(fake_stream.ended, fake_stream.ended.load() + 1, HostTime::max());
    }
    while (part_.launches.full() && part_.quiet.load() == 0) {
      const std::uint32_t seen = part_.room.rings.load();
      clock_.ring(segment_->header().to_device);
      if (part_.launches.full()) clock_.wait(part_.room, seen, HostTime::max());
    }
  }
  [[nodiscard]] std::uint64_t ended() const {
    std::uint64_t total = 0;
    for (const FakeStream& stream : part_.streams()) total += stream.ended.load();
    return total;
  }
  /// The thread that informs the listener, in the order in which the host learns of events.
  void tell_news() {
    for (;;) {
      const std::uint32_t seen = part_.news.rings.load();
      const HostTime next = tell_due(clock_.now());
      if (closing_.load() && part_.starts.empty() && part_.ends.empty()) return;
      clock_.wait(part_.news, seen, next);
    }
  }
  /// Reports all due events, starts before ends; returns when the next one is due.
  HostTime tell_due(HostTime now) {
    for (;;) {
      const std::int64_t start = part_.starts.empty() ? INT64_MAX : part_.starts.front().due;
      const std::int64_t end = part_.ends.empty() ? INT64_MAX : part_.ends.front().due;
      const std::int64_t due = std::min(start, end);
      if (due > nanoseconds_of(now)) {
        return due == INT64_MAX ? HostTime::max() : host_time(due);
      }
      auto take = [](auto& ring) {
        const FakeNotice notice = ring.front();
        ring.pop();
        return notice;
      };
      if (start == due) {
        const FakeNotice notice = take(part_.starts);
        listener_->on_started({notice.op, notice.pass, notice.launch}, host_time(notice.start));
      } else {
        const FakeNotice notice = take(part_.ends);
        listener_->on_finished({notice.op, notice.pass, notice.launch}, host_time(notice.start),
                               host_time(notice.end));
      }
    }
  }
  void end_news() {
    if (!news_) return;
    part_.watched.store(0);
    closing_.store(true);
    clock_.ring(part_.news);
    news_->wait();
    news_.reset();
  }

  std::unique_ptr<FakeSegment> segment_;
  FakeJobPart& part_;
  HostClock& clock_;
  const JobPlan* plan_ = nullptr;
  DeviceListener* listener_ = nullptr;
  std::unique_ptr<Crew> news_;
  std::atomic<bool> closing_{false};
  Bytes held_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_fake_device(const std::string& name, HostClock& clock,
                                                 ClientId client) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto segment, FakeSegment::open(name));
  FakeJobPart* part = segment->find(client);
  if (part == nullptr) {
    return fail("the fake GPU \"" + name + "\" has no job of client " +
                std::to_string(client.value));
  }
  if (part->taken.exchange(1) != 0) {
    return fail("the job of client " + std::to_string(client.value) + " on the fake GPU \"" +
                name + "\" is open already");
  }
  return std::make_unique<FakeDevice>(std::move(segment), *part, clock);
}

}  // namespace bubblesim::capture
