// Traces: the records as they lie in memory, and what `bubblesim inspect` computes of them.
// bubblesim/_trace.py makes of it what users see.
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <string_view>

#include "sim/plugin/python/arrays.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/errors.hpp"
#include "sim/plugin/python/surroundings.hpp"
#include "sim/run/load_trace.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/render_text.hpp"
#include "traces/record_names.hpp"
#include "traces/trace.hpp"

namespace bubblesim::plugin::python {
namespace {

// How the records of a trace lie in memory, as NumPy's record types. Times are whole nanoseconds.

using namespace traces;

const auto device_op_type = BUBBLESIM_RECORD_TYPE(DeviceOp, start, duration, correlation, name,
                                                  stream, kind, direction, shape, bytes,
                                                  collective, launch);
const auto host_call_type = BUBBLESIM_RECORD_TYPE(HostCall, start, duration, correlation, name,
                                                  thread, kind, stream, event);
const auto collective_type = BUBBLESIM_RECORD_TYPE(Collective, kind, bytes, group, group_size,
                                                   sequence, sequence_recorded, place);
const auto edge_type = BUBBLESIM_RECORD_TYPE(Edge, before, after, inferred);
const auto marker_type = BUBBLESIM_RECORD_TYPE(Marker, start, duration, name, thread, kind, number);
const auto memory_type = BUBBLESIM_RECORD_TYPE(MemorySample, at, allocated_bytes, reserved_bytes);
const auto stall_type = BUBBLESIM_RECORD_TYPE(HostStall, start, duration, thread, kind);
const auto clock_type = BUBBLESIM_RECORD_TYPE(ClockPair, at, realtime_ns, monotonic_ns);
const auto shape_type = BUBBLESIM_RECORD_TYPE(LaunchShape, grid, block, registers_per_thread,
                                              shared_memory_bytes);

/// A rank of a trace that lives as long as one of its ranks does.
struct Rank {
  std::shared_ptr<const run::LoadedTrace> trace;  // shared: by the trace and its ranks
  const RankTrace* rank;
};

struct Trace {
  std::shared_ptr<const run::LoadedTrace> trace;
};

/// Python names and defaults its arguments.
Trace read_trace(const std::vector<std::string>& paths, const std::optional<std::string>& cluster,
                 const std::optional<std::string>& configs) {
  const std::string clusters = config_folder(configs) + "/clusters";
  return {std::make_shared<const run::LoadedTrace>(
      good(unlocked([&] { return run::load_trace_on(paths, cluster, clusters); })))};
}

std::vector<Rank> ranks_of(const Trace& trace) {
  std::vector<Rank> ranks;
  for (const RankTrace& rank : trace.trace->job.ranks) ranks.push_back({trace.trace, &rank});
  return ranks;
}

std::string inspect_json(const Trace& trace, std::size_t top_kernels) {
  InspectOptions options;
  options.top_kernels = top_kernels;
  return unlocked([&] { return render_json(inspect_job(trace.trace->job, options)); });
}

py::dtype segment_type() {
  return record_type({BUBBLESIM_FIELD_AS("start", BubbleSegment, span.begin),
                      BUBBLESIM_FIELD_AS("end", BubbleSegment, span.end),
                      BUBBLESIM_FIELD(BubbleSegment, cause)},
                     sizeof(BubbleSegment));
}

py::dtype interval_type() {
  return record_type({BUBBLESIM_FIELD_AS("start", Interval, begin),
                      BUBBLESIM_FIELD(Interval, end)}, sizeof(Interval));
}

py::array bubbles_of(const Rank& self) {
  return array_of(segment_type(), unlocked([&] {
                    CounterSet counters;
                    return bubble_segments(*self.rank, device_use(*self.rank), {}, counters);
                  }));
}

py::array idle_of(const Rank& self) {
  return array_of(interval_type(), unlocked([&] {
                    const DeviceUse use = device_use(*self.rank);
                    return gaps_within(use.busy, use.window);
                  }));
}

py::array iterations_of(const Rank& self) {
  auto all = unlocked([&] { return inspect_rank(*self.rank).iterations.all; });
  return array_of(record_type({BUBBLESIM_FIELD(Iteration, number),
                               BUBBLESIM_FIELD_AS("start", Iteration, span.begin),
                               BUBBLESIM_FIELD_AS("end", Iteration, span.end),
                               BUBBLESIM_FIELD(Iteration, busy),
                               BUBBLESIM_FIELD(Iteration, own)}, sizeof(Iteration)),
                  std::move(all));
}

py::str text(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), "replace"));
}

py::list names_of(const Rank& self) {
  py::list names;
  for (std::uint32_t id = 0; id < self.rank->names.size(); ++id) {
    names.append(text(self.rank->names[NameId{id}]));
  }
  return names;
}

py::dict device_of(const Rank& self) {
  const DeviceInfo& device = self.rank->device;
  py::dict result;
  result["name"] = text(device.name);
  result["sm_count"] = device.sm_count;
  result["compute_major"] = device.compute_major;
  result["compute_minor"] = device.compute_minor;
  result["memory_bytes"] = device.memory_bytes;
  return result;
}

py::dict metadata_of(const Rank& self) {
  const Provenance& from = self.rank->provenance;
  py::dict result;
  result["source"] = text(from.source);
  result["format"] = text(from.format);
  result["tool"] = text(from.tool);
  result["note"] = text(from.note);
  return result;
}

py::list threads_of(const Rank& self) {
  py::list threads;
  for (const HostThread& thread : self.rank->threads) {
    py::dict entry;
    entry["system_id"] = thread.system_id;
    entry["name"] = text(thread.name);
    threads.append(entry);
  }
  return threads;
}

py::list streams_of(const Rank& self) {
  py::list streams;
  for (const Stream& stream : self.rank->streams) {
    py::dict entry;
    entry["system_id"] = stream.system_id;
    entry["priority"] = stream.priority;
    entry["device"] = stream.device;
    streams.append(entry);
  }
  return streams;
}

std::vector<std::uint32_t> peers_of(const Rank& self, std::size_t collective) {
  if (collective >= self.rank->collectives.size()) throw py::index_error("no such collective");
  return self.rank->collectives[collective].peers;
}

/// Names of a kind, by its number in the records.
template <std::size_t kCount>
py::tuple kind_names(const std::array<std::string_view, kCount>& words) {
  py::tuple names(kCount);
  for (std::size_t i = 0; i < kCount; ++i) names[i] = py::str(std::string(words[i]));
  return names;
}

void bind_kinds(py::module_& module) {
  std::array<std::string_view, kBubbleCauseCount> causes;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    causes[i] = bubble_cause_name(static_cast<BubbleCause>(i));
  }
  module.attr("BUBBLE_CAUSES") = kind_names(causes);
  module.attr("DEVICE_OP_KINDS") = kind_names(kDeviceOpKindNames);
  module.attr("COPY_DIRECTIONS") = kind_names(kCopyDirectionNames);
  module.attr("COLLECTIVE_KINDS") = kind_names(kCollectiveKindNames);
  module.attr("HOST_CALL_KINDS") = kind_names(kHostCallKindNames);
  module.attr("RANGE_KINDS") = kind_names(kMarkerKindNames);
  module.attr("STALL_KINDS") = kind_names(kStallKindNames);
}

template <class Member, class Type>
auto records(Member member, const Type& type) {
  return [member, type](const py::object& self) {
    return view(type(), self.cast<const Rank&>().rank->*member, self);
  };
}

}  // namespace

py::list counters_list(const CounterSet& counters) {
  py::list list;
  for (const auto& [name, entry] : counters) {
    py::dict item;
    item["name"] = name;
    item["severity"] = std::string(severity_name(entry.severity));
    item["count"] = entry.count;
    item["help"] = entry.help;
    list.append(item);
  }
  return list;
}

void bind_trace(py::module_& module) {
  bind_kinds(module);
  py::class_<Rank>(module, "TraceRank")
      .def_property_readonly("number", [](const Rank& self) { return self.rank->rank; })
      .def_property_readonly("world_size", [](const Rank& self) { return self.rank->world_size; })
      .def_property_readonly("device", &device_of)
      .def_property_readonly("metadata", &metadata_of)
      .def_property_readonly("threads", &threads_of)
      .def_property_readonly("streams", &streams_of)
      .def_property_readonly("names", &names_of)
      .def_property_readonly("counters", [](const Rank& self) {
        return counters_list(self.rank->counters);
      })
      .def_property_readonly("device_ops", records(&RankTrace::device_ops, device_op_type))
      .def_property_readonly("host_calls", records(&RankTrace::host_calls, host_call_type))
      .def_property_readonly("collectives", records(&RankTrace::collectives, collective_type))
      .def_property_readonly("edges", records(&RankTrace::edges, edge_type))
      .def_property_readonly("ranges", records(&RankTrace::markers, marker_type))
      .def_property_readonly("memory", records(&RankTrace::memory, memory_type))
      .def_property_readonly("stalls", records(&RankTrace::stalls, stall_type))
      .def_property_readonly("clocks", records(&RankTrace::clocks, clock_type))
      .def_property_readonly("shapes", [](const py::object& self) {
        const auto& shapes = self.cast<const Rank&>().rank->shapes;
        const void* first = shapes.size() == 0 ? nullptr : &shapes[ShapeId{0}];
        return view(shape_type(), first, shapes.size(), self);
      })
      .def("peers", &peers_of)
      .def("bubbles", &bubbles_of)
      .def("idle", &idle_of)
      .def("iterations", &iterations_of);
  py::class_<Trace>(module, "TraceFile")
      .def_property_readonly("ranks", &ranks_of)
      .def_property_readonly("counters", [](const Trace& self) {
        return counters_list(self.trace->counters);
      })
      .def_property_readonly("residual_ns",
                             [](const Trace& self) { return self.trace->residual; })
      .def("inspect_json", &inspect_json);
  module.def("read_trace", &read_trace);
}

}  // namespace bubblesim::plugin::python
