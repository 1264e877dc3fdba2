// The parts of a run's result as arrays. bubblesim/_run.py makes of it what users see.
#include <pybind11/stl.h>

#include "sim/observe/latency.hpp"
#include "sim/observe/result_rows.hpp"
#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/columns.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/run_output.hpp"
#include "sim/run/timeline_export.hpp"

namespace bubblesim::plugin::python {
namespace {

py::list rows(const RunOutput& self) {
  const std::vector<observe::ResultRow> all = observe::result_rows(self.report);
  std::vector<const observe::ResultRow*> borrowed;
  for (const observe::ResultRow& row : all) borrowed.push_back(&row);
  return result_columns_of(borrowed);
}

const observe::PolicyResult& policy_of(const RunOutput& self, std::size_t policy) {
  if (policy >= self.report.policies.size()) throw py::index_error("no such policy");
  return self.report.policies[policy];
}

const observe::FillerResult& filler_of(const RunOutput& self, std::size_t policy,
                                       std::size_t filler) {
  const observe::PolicyResult& result = policy_of(self, policy);
  if (filler >= result.fillers.size()) throw py::index_error("no such filler");
  return result.fillers[filler];
}

/// Times to first token and per output token.
py::tuple token_latencies(const RunOutput& self, std::size_t policy, std::size_t filler) {
  const auto& server = filler_of(self, policy, filler).server;
  if (!server) throw py::value_error("found a filler that is no language-model server");
  return py::make_tuple(server->ttft, server->tpot);
}

/// (rank, lengths, the first that counts) of every rank.
py::list iterations(const py::object& self, std::size_t policy) {
  py::list list;
  for (const auto& rank : policy_of(self.cast<const RunOutput&>(), policy).training.ranks) {
    list.append(
        py::make_tuple(rank.rank, view(py::dtype("i8"), rank.times, self), rank.first_counted));
  }
  return list;
}

const observe::TimelineRecorder& timeline_of(const RunOutput& self) {
  if (!self.timeline) {
    throw py::value_error("no timeline was recorded: run(..., timeline=\"POLICY\") records one");
  }
  return *self.timeline;
}

py::array slices(const py::object& self) {
  using observe::Slice;
  const py::dtype type = record_type({{"gpu", "u4", offsetof(Slice, gpu)},
                                      {"client", "u4", offsetof(Slice, client)},
                                      {"name", "u4", offsetof(Slice, name)},
                                      {"kind", "u1", offsetof(Slice, kind)},
                                      {"start", "i8", offsetof(Slice, start)},
                                      {"end", "i8", offsetof(Slice, end)},
                                      {"request", "u8", offsetof(Slice, request)}},
                                     sizeof(Slice));
  return view(type, timeline_of(self.cast<const RunOutput&>()).slices(), self);
}

py::array samples(const py::object& self) {
  using observe::CounterSample;
  const py::dtype type = record_type({{"track", "u4", offsetof(CounterSample, track)},
                                      {"at", "i8", offsetof(CounterSample, at)},
                                      {"value", "f8", offsetof(CounterSample, value)}},
                                     sizeof(CounterSample));
  return view(type, timeline_of(self.cast<const RunOutput&>()).samples(), self);
}

/// Texts of the names that slices have, by number; of clients, by (gpu, client).
py::tuple slice_names(const RunOutput& self) {
  const observe::TimelineRecorder& timeline = timeline_of(self);
  py::dict names, clients;
  for (const observe::Slice& slice : timeline.slices()) {
    const py::int_ name(slice.name.value);
    if (!names.contains(name)) names[name] = timeline.text(slice.name);
    const py::tuple client = py::make_tuple(slice.gpu.value, slice.client.value);
    if (!clients.contains(client)) clients[client] = timeline.client_name(slice.gpu, slice.client);
  }
  return py::make_tuple(names, clients);
}

py::list tracks(const RunOutput& self) {
  py::list list;
  for (const observe::CounterTrack& track : timeline_of(self).tracks()) {
    list.append(py::make_tuple(track.gpu.value, track.name));
  }
  return list;
}

void write_timeline(const RunOutput& self, const std::string& path) {
  good(traces::write_chrome_trace_file(path, run::timeline_to_chrome(timeline_of(self))));
}

py::tuple slice_kinds() {
  constexpr auto kLast = static_cast<std::size_t>(observe::SliceKind::kPhase);
  py::tuple names(kLast + 1);
  for (std::size_t i = 0; i <= kLast; ++i) {
    names[i] = py::str(observe::slice_kind_name(static_cast<observe::SliceKind>(i)));
  }
  return names;
}

}  // namespace

void bind_run_output(py::module_& module) {
  module.attr("SLICE_KINDS") = slice_kinds();
  py::class_<RunOutput>(module, "RunOutput")
      .def_readonly("json", &RunOutput::json)
      .def("rows", &rows)
      .def("iterations", &iterations)
      .def("latency", [](const RunOutput& self, std::size_t policy, std::size_t filler) {
        return filler_of(self, policy, filler).latency;
      })
      .def("token_latencies", &token_latencies)
      .def("latencies", [](const py::object& self, std::size_t policy, std::size_t filler) {
        const auto& result = filler_of(self.cast<const RunOutput&>(), policy, filler);
        return view(py::dtype("i8"), result.latency.samples(), self);
      })
      .def("slices", &slices)
      .def("samples", &samples)
      .def("slice_names", &slice_names)
      .def("tracks", &tracks)
      .def("write_timeline", &write_timeline);
}

}  // namespace bubblesim::plugin::python
