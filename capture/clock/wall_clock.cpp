// The machine's own time.
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "capture/clock/futex.hpp"
#include "capture/clock/host_clock.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::string_view kWall = "wall";

/// Tells the core that this is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Some 2 us.
constexpr std::uint32_t kLooksBetweenYields = 32;

/// A pause between two looks. The awaited thread may need this very core (tests/bench/README.md,
/// Gate).
inline void relax(std::uint32_t looks) noexcept {
  if (looks % kLooksBetweenYields == 0) sched_yield();
  relax();
}

class WallPart final : public ClockPart {};

class WallClock final : public HostClock {
 public:
  explicit WallClock(Duration spin) : spin_(std::max(spin, Duration{})) {}

  HostTime now() const override { return machine_now(); }
  std::unique_ptr<ClockPart> join(Turn) override { return std::make_unique<WallPart>(); }

  void sleep_until(HostTime until) override {
    for (HostTime now = machine_now(); now < until; now = machine_now()) {
      if (until - now > spin_) {
        sleep_machine(until - spin_);
      } else {
        relax();
      }
    }
  }

  void wait(Bell& bell, std::uint32_t seen, HostTime deadline) override {
    HostTime now = machine_now();
    const HostTime awake_until = now + spin_;
    std::uint32_t looks = 0;
    while (bell.rings.load(std::memory_order_seq_cst) == seen && now < deadline) {
      if (now < awake_until || deadline - now <= spin_) {
        relax(++looks);
      } else {
        doze(bell, seen, deadline);
      }
      now = machine_now();
    }
  }

  bool look(HostTime deadline, const std::function<bool()>& there) override {
    const HostTime until = std::min(deadline, machine_now() + spin_);
    for (std::uint32_t looks = 1; !there(); ++looks) {
      if (machine_now() >= until) return false;
      relax(looks);
    }
    return true;
  }

  void sleep(Bell& bell, std::uint32_t seen, HostTime deadline) override {
    if (deadline - machine_now() > spin_) doze(bell, seen, deadline);
  }

  void ring(Bell& bell) override {
    bell.rings.fetch_add(1, std::memory_order_seq_cst);
    // A waiter that counts itself as a sleeper after this load sees the new count of rings.
    if (bell.sleepers.load(std::memory_order_seq_cst) > 0) futex_wake(bell.rings);
  }

  std::uint32_t bell_id() override { return 0; }
  std::uint32_t parts_begun() const override { return 0; }
  bool await_parts(std::uint32_t, Duration) override { return true; }
  TurnHolder holder() const override { return {}; }
  std::string address() const override {
    return std::string(kWall) + ":" + std::to_string(spin_.count());
  }

 private:
  // Sleeps until shortly before the deadline; then the caller spins.
  void doze(Bell& bell, std::uint32_t seen, HostTime deadline) const {
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    futex_wait(bell.rings, seen, deadline == HostTime::max() ? deadline : deadline - spin_);
    bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  static void sleep_machine(HostTime until) {
    const std::int64_t ns = to_ns(until);
    const timespec at{ns / 1'000'000'000, ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
  }

  Duration spin_;
};

}  // namespace

std::unique_ptr<HostClock> wall_clock(Duration spin) { return std::make_unique<WallClock>(spin); }

std::unique_ptr<HostClock> wall_clock_at(const std::string& address) {
  if (address == kWall) return wall_clock();
  const std::string start = std::string(kWall) + ":";
  if (!address.starts_with(start)) return nullptr;
  const auto spin = parse_number<std::int64_t>(address.substr(start.size()));
  if (!spin || *spin < 0) return nullptr;
  return wall_clock(Duration{*spin});
}

}  // namespace bubblesim::capture
