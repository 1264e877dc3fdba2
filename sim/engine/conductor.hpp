// Several engines, a domain each (a GPU with everything on it), in one order of time.
//
// The order is that of EventKey with the domain before the sequence: time, phase, domain, then the
// order of scheduling in the domain. An event may call into other domains, in which exactly the
// events before it in this order have run.
//
// Domains seldom interact: GPUs of a job meet at collectives. Each domain knows a time before which
// it calls into no other domain (ContactBound). A joint action, to which several domains
// contribute, affects others only with its last part (JointContact). Until the least of these times
// lies a *window*: each domain runs its events there on its own, one domain after another, which
// keeps caches warm, or in parallel on several threads. Windows, their lengths and the threads
// change no result, since domains do not interact inside a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/engine/thread_pool.hpp"

namespace bubblesim::engine {

/// Bounds a domain's next call into other domains.
class ContactBound {
 public:
  virtual ~ContactBound() = default;
  /// Until the returned time, exclusive, no event of the domain calls into another domain or into
  /// anything shared, as long as no other domain calls into it. The result is `now` or later; the
  /// domain's events before `now` have run. SimTime::max(): never.
  [[nodiscard]] virtual SimTime next_contact(SimTime now) const = 0;
};

/// A contact to which several domains contribute: only the last contribution affects others. In a
/// window a domain does not publish its contributions (Engine::in_order() is false).
class JointContact {
 public:
  virtual ~JointContact() = default;
  /// Until the returned time, exclusive, no joint contact gets its last contribution, as long as no
  /// domain is called from outside. The result is `now` or later; events before `now` have run.
  /// SimTime::max(): never.
  [[nodiscard]] virtual SimTime next_completion(SimTime now) = 0;
  /// A window is over and its events have run: its contributions count from now on.
  virtual void after_window() = 0;
};

enum class Windows : std::uint8_t {
  kNever,       ///< no windows: an observer watches all events in order
  kWorthwhile,  ///< windows that are expected to hold enough events
  kAlways,      ///< all windows, however short; for tests
};

struct ConductorSetup {
  Windows windows = Windows::kWorthwhile;
  std::size_t threads = 1;  ///< that run a window's domains; 0 counts as 1
};

class Conductor {
 public:
  explicit Conductor(const ConductorSetup& setup = {});
  ~Conductor();

  /// The domain of shared state. Its events never run in a window.
  [[nodiscard]] Engine& shared() { return *engines_.front(); }
  /// Must not be called during a run; `bound` outlives the conductor's last run.
  Engine& add_domain(const ContactBound& bound);
  /// Sets the joint contacts, which outlive the conductor's last run. Without a call there are
  /// none.
  void set_joint(JointContact& joint) { joint_ = &joint; }

  /// Runs as Engine::run_until does, over all domains; exceptions of handlers are passed on.
  void run_until(SimTime limit = SimTime::max());
  /// An engine's stop() ended the last run.
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] std::optional<SimTime> next_due() const;
  [[nodiscard]] SimTime now() const;
  [[nodiscard]] std::uint64_t events() const;
  /// The number of events() that ran in windows.
  [[nodiscard]] std::uint64_t events_in_windows() const { return events_in_windows_; }
  [[nodiscard]] std::uint64_t windows() const { return windows_; }

 private:
  [[nodiscard]] SimTime window_end(SimTime from, SimTime last, Duration least) const;
  [[nodiscard]] Duration time_of(std::uint64_t events_a_domain) const;
  void run_window(SimTime from, SimTime until);
  void run_in_order(SimTime until);
  void run_turn(Engine& engine, SimTime until);
  [[nodiscard]] bool other_comes_first(const EventKey& next) const;

  Windows mode_;
  ThreadPool pool_;
  Engine::Order order_;
  std::vector<std::unique_ptr<Engine>> engines_;  ///< the shared one first
  std::vector<const ContactBound*> bounds_;       ///< of the others
  JointContact* joint_ = nullptr;
  std::int64_t stretch_ = 1;  ///< events between attempts to open a window
  std::uint64_t windows_ = 0;
  std::uint64_t events_in_windows_ = 0;
  bool stopped_ = false;
};

}  // namespace bubblesim::engine
