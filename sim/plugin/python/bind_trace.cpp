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

py::dtype device_op_type() {
  return record_type({{"start", "i8", offsetof(DeviceOp, start)},
                      {"duration", "i8", offsetof(DeviceOp, duration)},
                      {"correlation", "u8", offsetof(DeviceOp, correlation)},
                      {"name", "u4", offsetof(DeviceOp, name)},
                      {"stream", "u4", offsetof(DeviceOp, stream)},
                      {"kind", "u1", offsetof(DeviceOp, kind)},
                      {"direction", "u1", offsetof(DeviceOp, direction)},
                      {"shape", "u4", offsetof(DeviceOp, shape)},
                      {"bytes", "u8", offsetof(DeviceOp, bytes)},
                      {"collective", "u4", offsetof(DeviceOp, collective)},
                      {"launch", "u4", offsetof(DeviceOp, launch)}},
                     sizeof(DeviceOp));
}

py::dtype host_call_type() {
  return record_type({{"start", "i8", offsetof(HostCall, start)},
                      {"duration", "i8", offsetof(HostCall, duration)},
                      {"correlation", "u8", offsetof(HostCall, correlation)},
                      {"name", "u4", offsetof(HostCall, name)},
                      {"thread", "u4", offsetof(HostCall, thread)},
                      {"kind", "u1", offsetof(HostCall, kind)},
                      {"stream", "u4", offsetof(HostCall, stream)},
                      {"event", "u8", offsetof(HostCall, event)}},
                     sizeof(HostCall));
}

py::dtype collective_type() {
  return record_type({{"kind", "u1", offsetof(Collective, kind)},
                      {"bytes", "u8", offsetof(Collective, bytes)},
                      {"group", "u4", offsetof(Collective, group)},
                      {"group_size", "u4", offsetof(Collective, group_size)},
                      {"sequence", "u8", offsetof(Collective, sequence)},
                      {"sequence_recorded", "?", offsetof(Collective, sequence_recorded)},
                      {"place", "u4", offsetof(Collective, place)}},
                     sizeof(Collective));
}

py::dtype edge_type() {
  return record_type({{"before", "u4", offsetof(Edge, before)},
                      {"after", "u4", offsetof(Edge, after)},
                      {"inferred", "?", offsetof(Edge, inferred)}},
                     sizeof(Edge));
}

py::dtype marker_type() {
  return record_type({{"start", "i8", offsetof(Marker, start)},
                      {"duration", "i8", offsetof(Marker, duration)},
                      {"name", "u4", offsetof(Marker, name)},
                      {"thread", "u4", offsetof(Marker, thread)},
                      {"kind", "u1", offsetof(Marker, kind)},
                      {"number", "i8", offsetof(Marker, number)}},
                     sizeof(Marker));
}

py::dtype memory_type() {
  return record_type({{"at", "i8", offsetof(MemorySample, at)},
                      {"allocated_bytes", "u8", offsetof(MemorySample, allocated_bytes)},
                      {"reserved_bytes", "u8", offsetof(MemorySample, reserved_bytes)}},
                     sizeof(MemorySample));
}

py::dtype stall_type() {
  return record_type({{"start", "i8", offsetof(HostStall, start)},
                      {"duration", "i8", offsetof(HostStall, duration)},
                      {"thread", "u4", offsetof(HostStall, thread)},
                      {"kind", "u1", offsetof(HostStall, kind)}},
                     sizeof(HostStall));
}

py::dtype clock_type() {
  return record_type({{"at", "i8", offsetof(ClockPair, at)},
                      {"realtime_ns", "i8", offsetof(ClockPair, realtime_ns)},
                      {"monotonic_ns", "i8", offsetof(ClockPair, monotonic_ns)}},
                     sizeof(ClockPair));
}

py::dtype shape_type() {
  return record_type(
      {{"grid", "(3,)u4", offsetof(LaunchShape, grid)},
       {"block", "(3,)u4", offsetof(LaunchShape, block)},
       {"registers_per_thread", "u2", offsetof(LaunchShape, registers_per_thread)},
       {"shared_memory_bytes", "u4", offsetof(LaunchShape, shared_memory_bytes)}},
      sizeof(LaunchShape));
}

/// A rank of a trace that lives as long as one of its ranks does.
struct Rank {
  std::shared_ptr<const run::LoadedTrace> trace;  // shared: by the trace and its ranks
  const RankTrace* rank;
};

struct Trace {
  std::shared_ptr<const run::LoadedTrace> trace;
};

/// The function of the module; Python names and defaults its arguments.
struct ReadTrace {
  py::module_ module;

  Trace operator()(const std::vector<std::string>& paths, const std::optional<std::string>& cluster,
                   const std::optional<std::string>& configs) const {
    const std::string clusters = config_folder(module, configs) + "/clusters";
    return {std::make_shared<const run::LoadedTrace>(
        good(unlocked([&] { return run::load_trace_on(paths, cluster, clusters); })))};
  }
};

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
  return record_type({{"start", "i8", offsetof(BubbleSegment, span.begin)},
                      {"end", "i8", offsetof(BubbleSegment, span.end)},
                      {"cause", "u1", offsetof(BubbleSegment, cause)}},
                     sizeof(BubbleSegment));
}

py::dtype interval_type() {
  return record_type({{"start", "i8", offsetof(Interval, begin)},
                      {"end", "i8", offsetof(Interval, end)}}, sizeof(Interval));
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
  return array_of(record_type({{"number", "i8", offsetof(Iteration, number)},
                               {"start", "i8", offsetof(Iteration, span.begin)},
                               {"end", "i8", offsetof(Iteration, span.end)},
                               {"busy", "i8", offsetof(Iteration, busy)},
                               {"own", "i8", offsetof(Iteration, own)}}, sizeof(Iteration)),
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

template <class Member>
auto records(Member member, py::dtype (*type)()) {
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
      .def_property_readonly("device_ops", records(&RankTrace::device_ops, &device_op_type))
      .def_property_readonly("host_calls", records(&RankTrace::host_calls, &host_call_type))
      .def_property_readonly("collectives", records(&RankTrace::collectives, &collective_type))
      .def_property_readonly("edges", records(&RankTrace::edges, &edge_type))
      .def_property_readonly("ranges", records(&RankTrace::markers, &marker_type))
      .def_property_readonly("memory", records(&RankTrace::memory, &memory_type))
      .def_property_readonly("stalls", records(&RankTrace::stalls, &stall_type))
      .def_property_readonly("clocks", records(&RankTrace::clocks, &clock_type))
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
  module.def("read_trace", ReadTrace{module});
}

}  // namespace bubblesim::plugin::python
