// A policy written in Python: passes calls from C++ to an object of a subclass of
// `bubblesim.Policy`; an exception from that ends the run.
//
// Threads: every call takes Python's global lock. A thread that waits for the run must not hold the
// lock.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <pybind11/pybind11.h>

#include "sim/policy/declaration.hpp"
#include "sim/policy/placement.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::plugin::python {

namespace py = pybind11;

/// The base class in Python: every method does what C++'s default does.
class DefaultPolicy final : public policy::Policy {
 public:
  policy::Sharing start(const policy::GpuInfo&, std::span<const policy::ClientInfo>) override {
    return {};
  }
};

/// Python's handle of an object that lives for one call: usable during the call, an error after it.
template <class T>
class Borrowed {
 public:
  [[nodiscard]] T& get() const {
    if (object_ == nullptr) throw std::runtime_error("used after the call that it was given to");
    return *object_;
  }
  void set(T* object) { object_ = object; }

 private:
  T* object_ = nullptr;
};

using BorrowedActions = Borrowed<policy::Actions>;
using BorrowedCounters = Borrowed<CounterSet>;

/// The first exception of a run, kept so that it can be the cause of the run's error.
struct RunFault {
  py::object exception;  ///< null: none yet
};

/// Keeps the raised exception in `fault` and returns an error with its description: "on_launch at
/// 1.5ms: ValueError: x".
[[nodiscard]] std::runtime_error told(py::error_already_set& raised, const std::string& where,
                                      RunFault& fault);

class PythonPolicy final : public policy::Policy {
 public:
  /// `object`: an instance of a subclass of bubblesim.Policy. Needs the lock. `fault` outlives it.
  PythonPolicy(py::object object, RunFault& fault);
  ~PythonPolicy() override;
  PythonPolicy(const PythonPolicy&) = delete;
  PythonPolicy& operator=(const PythonPolicy&) = delete;

  policy::Sharing start(const policy::GpuInfo& gpu,
                        std::span<const policy::ClientInfo> clients) override;
  policy::ClientSharing share(const policy::ClientInfo& client) override;
  policy::Admission admit(const policy::ClientInfo& filler, Bytes used,
                          const policy::GpuInfo& gpu) override;
  policy::Verdict on_launch(const policy::LaunchInfo& launch, policy::Instant now,
                            policy::Actions& actions) override;
  void on_completion(const policy::CompletionInfo& completion, policy::Instant now,
                     policy::Actions& actions) override;
  void on_bubble_begin(const policy::BubbleInfo& bubble, policy::Instant now,
                       policy::Actions& actions) override;
  void on_bubble_end(policy::Instant now, policy::Actions& actions) override;
  void on_iteration(const policy::IterationInfo& iteration, policy::Instant now,
                    policy::Actions& actions) override;
  void on_gone(ClientId client, policy::Instant now, policy::Actions& actions) override;
  [[nodiscard]] std::optional<policy::Instant> next_tick() const override;
  void on_tick(policy::Instant now, policy::Actions& actions) override;
  void add_counts(CounterSet& counters) const override;

 private:
  struct Methods;
  template <class... Arguments>
  py::object call(const py::object& method, const char* name, policy::Instant now,
                  const Arguments&... arguments) const;
  template <class... Arguments>
  py::object act(const py::object& method, const char* name, policy::Instant now,
                 policy::Actions& actions, const Arguments&... arguments) const;
  template <class... Arguments>
  void notify(const py::object& method, const char* name, policy::Instant now,
              policy::Actions& actions, const Arguments&... arguments) const;

  std::unique_ptr<Methods> methods_;  ///< needs the lock to be destroyed
  RunFault& fault_;
};

/// `object`: an instance of a subclass of bubblesim.Placer, or a fault. Needs the lock. `fault`
/// outlives it.
[[nodiscard]] std::unique_ptr<policy::Placer> placer_of(py::object object, RunFault& fault);

/// A policy that Python registered: its declaration, and the callable that makes it.
struct Registered {
  policy::PolicySpec spec;  ///< without maker
  py::object make;          ///< takes a dict of parameters, gives a Policy
  py::object make_placer;   ///< takes a dict of parameters, gives a Placer; or None
};

/// The spec with a maker that calls Python. `fault` outlives the policies made. The spec may be
/// copied without the lock; its last copy must be destroyed with the lock.
[[nodiscard]] policy::PolicySpec runnable(const Registered& registered, RunFault& fault);

}  // namespace bubblesim::plugin::python
