#include "sim/plugin/python/trace_records.hpp"

#include "traces/trace.hpp"

namespace bubblesim::plugin::python {

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

}  // namespace bubblesim::plugin::python
