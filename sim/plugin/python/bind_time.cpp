// Spans and instants as whole nanoseconds; latencies.
#include <cmath>

#include <pybind11/stl.h>

#include "sim/base/units.hpp"
#include "sim/observe/latency.hpp"
#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"

namespace bubblesim::plugin::python {
namespace {

// Spans and instants are whole nanoseconds, a Python int; these make and show them.

namespace py = pybind11;

std::int64_t nanoseconds(double count, double unit) {
  const double exact = std::round(count * unit);
  if (!(std::abs(exact) < 9e18)) throw py::value_error("not a span of time in 64 bits");
  return static_cast<std::int64_t>(exact);
}

}  // namespace

void bind_time(py::module_& module) {
  module.def("us", [](double count) { return nanoseconds(count, 1e3); }, py::arg("count"),
             "Microseconds as nanoseconds, rounded to whole ones.");
  module.def("ms", [](double count) { return nanoseconds(count, 1e6); }, py::arg("count"),
             "Milliseconds as nanoseconds, rounded to whole ones.");
  module.def("seconds", [](double count) { return nanoseconds(count, 1e9); }, py::arg("count"),
             "Seconds as nanoseconds, rounded to whole ones.");
  module.def(
      "parse_duration",
      [](const std::string& text) {
        const auto span = parse_duration(text);
        if (!span) throw py::value_error(span.error().message);
        return *span;
      },
      py::arg("text"), "\"1.5ms\" as nanoseconds; exact.");
  module.def("format_duration", &format_duration, py::arg("ns"),
             "Nanoseconds as \"1.5ms\"; exact.");
}

namespace {

// Latencies, all of them or in buckets: percentiles and means, in whole nanoseconds.

using observe::LatencyDistribution;
using observe::LatencyHistogram;

template <class Latencies>
std::optional<observe::LatencyValue> checked_percentile(const Latencies& self, double percent) {
  if (!(percent > 0 && percent <= 100)) {
    throw py::value_error("found percentile " + std::to_string(percent) +
                          ", expected more than 0, at most 100");
  }
  return self.percentile(percent);
}

template <class Latencies>
std::optional<Duration> percentile(const Latencies& self, double percent) {
  const auto found = checked_percentile(self, percent);
  return found ? std::optional(found->value) : std::nullopt;
}

template <class Latencies>
bool is_lower_bound(const Latencies& self, double percent) {
  const auto found = checked_percentile(self, percent);
  return found && found->bound == observe::Bound::kLower;
}

/// What counts of requests and percentiles are, however they are kept.
template <class Latencies>
void bind_common(py::class_<Latencies>& type) {
  type.def("percentile", &percentile<Latencies>, py::arg("percent"),
           "Nearest rank, in ns; None without a sample. percent in (0, 100].")
      .def("is_lower_bound", &is_lower_bound<Latencies>, py::arg("percent"),
           "Whether unfinished requests lie at or below that percentile: the true one is it or "
           "more.")
      .def("__add__",
           [](const Latencies& self, const Latencies& other) {
             Latencies result = self;
             result.merge(other);
             return result;
           },
           py::is_operator(), "Both together.")
      .def_property_readonly("completed", &Latencies::completed,
                             "How many requests were completed.")
      .def_property_readonly("unfinished", &Latencies::unfinished,
                             "How many were not when the run ended.");
}

template <class Latencies>
std::string shown(const char* name, const Latencies& self) {
  return std::string("<bubblesim.") + name + " of " + std::to_string(self.completed()) +
         " completed and " + std::to_string(self.unfinished()) + " unfinished requests>";
}

std::optional<double> mean(const LatencyHistogram& self) {
  const observe::LatencyBuckets buckets = observe::buckets_of(self);
  double sum = 0;
  for (std::size_t i = 0; i < buckets.middles.size(); ++i) {
    sum += static_cast<double>(to_ns(buckets.middles[i])) *
           static_cast<double>(buckets.completed[i] + buckets.unfinished[i]);
  }
  const auto count = static_cast<double>(self.completed() + self.unfinished());
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

void bind_exact(py::module_& module) {
  py::class_<LatencyDistribution> latencies(
      module, "Latencies",
      "Every latency of a run: percentiles are those of its table. Unfinished requests that "
      "arrived in the measured window count with their age.");
  bind_common(latencies);
  latencies
      .def("mean",
           [](const LatencyDistribution& self) -> std::optional<double> {
             const auto summary = self.summary();
             if (!summary) return std::nullopt;
             return static_cast<double>(to_ns(summary->mean.value));
           },
           "In ns, over all requests; None without a sample.")
      .def("histogram", [](const LatencyDistribution& self) { return LatencyHistogram(self); },
           "The same in buckets, within 1 %.")
      .def("__repr__", [](const LatencyDistribution& self) { return shown("Latencies", self); },
           "For people.");
}

void bind_buckets(py::class_<LatencyHistogram>& histogram) {
  histogram
      .def_property_readonly("edges", [](const LatencyHistogram& self) {
             return array_of(py::dtype("i8"), observe::buckets_of(self).edges);
           }, "int64 array of ns: bucket i is [edges[i], edges[i + 1]); from the first to the last "
              "bucket in use.")
      .def_property_readonly("counts", [](const LatencyHistogram& self) {
             return array_of(py::dtype("u8"), observe::buckets_of(self).completed);
           }, "uint64 array: completed requests, by bucket.")
      .def_property_readonly("unfinished_counts", [](const LatencyHistogram& self) {
             return array_of(py::dtype("u8"), observe::buckets_of(self).unfinished);
           }, "uint64 array: unfinished requests by their age, by bucket.");
}

}  // namespace

void bind_latency(py::module_& module) {
  py::class_<LatencyHistogram> histogram(
      module, "LatencyHistogram",
      "Latencies in buckets at most 1/128 of their values wide: percentiles are off by at most "
      "1 %. Unfinished requests count with their age.");
  bind_common(histogram);
  histogram.def("mean", &mean, "In ns, over all requests; None without a sample.")
      .def("__eq__", [](const LatencyHistogram& self, const LatencyHistogram& other) {
        return self == other;
      }, py::is_operator(), "Whether all counts are equal.")
      .def("__repr__", [](const LatencyHistogram& self) {
        return shown("LatencyHistogram", self);
      }, "For people.");
  bind_buckets(histogram);
  bind_exact(module);
}

}  // namespace bubblesim::plugin::python
