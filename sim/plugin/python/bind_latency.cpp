// LatencyHistogram: percentiles, mean and buckets of latencies, all in whole nanoseconds.
#include <pybind11/stl.h>

#include <cmath>

#include "sim/observe/latency_buckets.hpp"
#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"

namespace bubblesim::plugin::python {
namespace {

using observe::LatencyHistogram;

std::optional<observe::LatencyValue> checked_percentile(const LatencyHistogram& self,
                                                        double percent) {
  if (!(percent > 0 && percent <= 100)) {
    throw py::value_error("found percentile " + std::to_string(percent) +
                          ", expected more than 0, at most 100");
  }
  return self.percentile(percent);
}

std::optional<std::int64_t> percentile(const LatencyHistogram& self, double percent) {
  const auto found = checked_percentile(self, percent);
  return found ? std::optional(to_ns(found->value)) : std::nullopt;
}

bool is_lower_bound(const LatencyHistogram& self, double percent) {
  const auto found = checked_percentile(self, percent);
  return found && found->bound == observe::Bound::kLower;
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

LatencyHistogram sum(const LatencyHistogram& self, const LatencyHistogram& other) {
  LatencyHistogram result = self;
  result.merge(other);
  return result;
}

std::string shown(const LatencyHistogram& self) {
  return "<bubblesim.LatencyHistogram of " + std::to_string(self.completed()) +
         " completed and " + std::to_string(self.unfinished()) + " unfinished requests>";
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
  histogram.def("percentile", &percentile, py::arg("percent"),
                "Nearest rank, in ns; None without a sample. percent in (0, 100].")
      .def("is_lower_bound", &is_lower_bound, py::arg("percent"),
           "Whether unfinished requests lie at or below that percentile: the true one is it or "
           "more.")
      .def("mean", &mean, "In ns, over all requests; None without a sample.")
      .def("__add__", &sum, py::is_operator(), "Both together.")
      .def("__eq__", [](const LatencyHistogram& self, const LatencyHistogram& other) {
        return self == other;
      }, py::is_operator(), "Whether all counts are equal.")
      .def("__repr__", &shown, "For people.")
      .def_property_readonly("completed", &LatencyHistogram::completed,
                             "How many requests were completed.")
      .def_property_readonly("unfinished", &LatencyHistogram::unfinished,
                             "How many were not when the run ended.");
  bind_buckets(histogram);
}

}  // namespace bubblesim::plugin::python
