// The parts of the Python module, one function for each; and quantities as numbers.
#pragma once

#include <cstdint>

#include <pybind11/pybind11.h>

#include "sim/base/counters.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantities.hpp"
#include "sim/base/time.hpp"

namespace pybind11::detail {

/// A type that is one number to Python.
template <class Type, class Number>
struct number_caster {
  PYBIND11_TYPE_CASTER(Type, make_caster<Number>::name);
  bool load(handle source, bool convert) {
    make_caster<Number> number;
    if (!number.load(source, convert)) return false;
    value = Type{cast_op<Number>(number)};
    return true;
  }
  static handle cast(const Type& given, return_value_policy policy, handle parent) {
    if constexpr (requires { given.value; }) {
      return make_caster<Number>::cast(given.value, policy, parent);
    } else {
      return make_caster<Number>::cast(bubblesim::to_ns(given), policy, parent);
    }
  }
};

/// Whole nanoseconds.
template <>
struct type_caster<bubblesim::Duration> : number_caster<bubblesim::Duration, std::int64_t> {};
template <>
struct type_caster<bubblesim::Bytes> : number_caster<bubblesim::Bytes, std::uint64_t> {};
template <>
struct type_caster<bubblesim::BytesPerSecond> : number_caster<bubblesim::BytesPerSecond, double> {};
template <class Tag>
struct type_caster<bubblesim::StrongId<Tag>>
    : number_caster<bubblesim::StrongId<Tag>, std::uint32_t> {};

}  // namespace pybind11::detail

namespace bubblesim::plugin::python {

/// Helpers for spans of time: us(), ms(), seconds(), parse_duration(), format_duration().
void bind_time(pybind11::module_& module);
/// Enumerations, and the types that a policy's methods take and return.
void bind_contract(pybind11::module_& module);
/// Policy, Actions, Counters.
void bind_policy(pybind11::module_& module);
/// Placer, and the types that its methods take.
void bind_placer(pybind11::module_& module);
/// Declarations of parameters, and register().
void bind_register(pybind11::module_& module);
/// LatencyHistogram.
void bind_latency(pybind11::module_& module);
/// simulate(), and the types of its result.
void bind_run(pybind11::module_& module);
void bind_run_output(pybind11::module_& module);
/// read_trace(), and the records of a trace.
void bind_trace(pybind11::module_& module);
/// read_store(), and the contents of a results store.
void bind_store(pybind11::module_& module);
/// execute_sweep().
void bind_sweep(pybind11::module_& module);
/// answer_question(), and the types of its result.
void bind_advise(pybind11::module_& module);
/// KernelTimes, Cluster, Testbed: the times of kernels, all-reduces and training jobs.
void bind_fit(pybind11::module_& module);
/// serve_measured() and schedules, for the judges of notebooks/lab.
void bind_lab(pybind11::module_& module);
/// PairMachine, Policies and run_scene(): one GPU shared.
void bind_sharing(pybind11::module_& module);

/// Counters as a list of dicts with name, severity, count and help.
[[nodiscard]] pybind11::list counters_list(const CounterSet& counters);

}  // namespace bubblesim::plugin::python
