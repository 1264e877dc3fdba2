// The classes Policy, Actions and Counters.
#include <pybind11/stl.h>

#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/python_policy.hpp"

namespace bubblesim::plugin::python {
namespace {

using namespace policy;

void release(const BorrowedActions& self, std::uint32_t client) {
  self.get().release(ClientId{client});
}

LaunchInfo oldest_held(const BorrowedActions& self, std::uint32_t client) {
  if (self.get().held(ClientId{client}) == 0) throw py::value_error("the client holds no launch");
  return self.get().oldest_held(ClientId{client});
}

void reshape(const BorrowedActions& self, std::uint32_t client, std::uint64_t most_blocks,
             double slowdown) {
  self.get().reshape(ClientId{client}, {most_blocks, slowdown});
}

void bind_actions(py::module_& module) {
  py::class_<BorrowedActions>(module, "Actions",
                              "What a policy may do during a call; an error after it.")
      .def("release", &release, py::arg("client"), "Lets the oldest held launch go on.")
      .def("held", [](const BorrowedActions& self,
                      std::uint32_t client) { return self.get().held(ClientId{client}); },
           py::arg("client"), "How many launches of the client are held.")
      .def("oldest_held", &oldest_held, py::arg("client"), "The launch that release() lets go on.")
      .def("set_sm_percentage", [](const BorrowedActions& self, std::uint32_t client,
                                   std::uint32_t percentage) {
             self.get().set_sm_percentage(ClientId{client}, percentage);
           }, py::arg("client"), py::arg("percentage"), "MPS active-thread percentage, 1 to 100.")
      .def("set_priority", [](const BorrowedActions& self, std::uint32_t client,
                              std::int32_t priority) {
             self.get().set_priority(ClientId{client}, priority);
           }, py::arg("client"), py::arg("priority"), "Larger is placed first.")
      .def("set_time_slice", [](const BorrowedActions& self, std::uint32_t client,
                                std::int64_t slice_ns) {
             self.get().set_time_slice(ClientId{client}, Duration{slice_ns});
           }, py::arg("client"), py::arg("slice_ns"), "Its turn, where clients are time-sliced.")
      .def("preempt", [](const BorrowedActions& self, std::uint32_t client, Preemption how) {
             self.get().preempt(ClientId{client}, how);
           }, py::arg("client"), py::arg("how"), "Drives the client's kernels off the GPU.")
      .def("proceed", [](const BorrowedActions& self, std::uint32_t client) {
             self.get().proceed(ClientId{client});
           }, py::arg("client"), "Ends preempt().")
      .def("reshape", &reshape, py::arg("client"), py::kw_only(), py::arg("most_blocks") = 0,
           py::arg("slowdown") = 1.0, "The form of the client's next launch that goes on.")
      .def("set_resident_memory", [](const BorrowedActions& self, std::uint32_t client,
                                     std::uint64_t resident) {
             self.get().set_resident_memory(ClientId{client}, Bytes{resident});
           }, py::arg("client"), py::arg("resident"),
           "Bytes of the client that are on the device from now on.")
      .def("set_asking", [](const BorrowedActions& self, std::uint32_t client, bool asks) {
             self.get().set_asking(ClientId{client}, asks);
           }, py::arg("client"), py::arg("asks"),
           "Whether the client's launches wait for verdicts from now on, or are only told.");
}

void add_count(const BorrowedCounters& self, const std::string& name, Severity severity,
               const std::string& help, std::uint64_t count) {
  self.get().add(name, CounterSet::Entry{severity, help, count});
}

// What a subclass has not of its own is never called: these are for super() and for help().
void bind_base(py::module_& module) {
  py::class_<DefaultPolicy>(module, "Policy",
                            "A sharing policy for one GPU; derive from it. Calls come one at a "
                            "time, at instants (nanoseconds since the start) that never go back.")
      .def(py::init<>())
      .def("start", [](DefaultPolicy&, const GpuInfo&, const std::vector<ClientInfo>&) {
             return Sharing{};
           }, py::arg("gpu"), py::arg("clients"), "First call; clients[0] is protected. Sharing.")
      .def("share", [](DefaultPolicy&, const ClientInfo&) { return ClientSharing{}; },
           py::arg("client"), "Then once a client. ClientSharing.")
      .def("admit", [](DefaultPolicy& self, const ClientInfo& filler, std::uint64_t used,
                       const GpuInfo& gpu) { return self.admit(filler, Bytes{used}, gpu); },
           py::arg("filler"), py::arg("used"), py::arg("gpu"),
           "Then once a filler; used: bytes. Admission.")
      .def("on_launch", [](DefaultPolicy&, const LaunchInfo&, std::int64_t,
                           const BorrowedActions&) { return Verdict::kAdmit; },
           py::arg("launch"), py::arg("now"), py::arg("actions"),
           "A host thread calls a launch. ADMIT or HOLD.")
      .def("on_completion", [](DefaultPolicy&, const CompletionInfo&, std::int64_t,
                               const BorrowedActions&) {},
           py::arg("completion"), py::arg("now"), py::arg("actions"), "Needs completions.")
      .def("on_bubble_begin", [](DefaultPolicy&, const BubbleInfo&, std::int64_t,
                                 const BorrowedActions&) {},
           py::arg("bubble"), py::arg("now"), py::arg("actions"), "Needs bubbles.")
      .def("on_bubble_end", [](DefaultPolicy&, std::int64_t, const BorrowedActions&) {},
           py::arg("now"), py::arg("actions"), "Needs bubbles.")
      .def("on_iteration", [](DefaultPolicy&, const IterationInfo&, std::int64_t,
                              const BorrowedActions&) {},
           py::arg("iteration"), py::arg("now"), py::arg("actions"), "Needs iterations.")
      .def("on_gone", [](DefaultPolicy&, std::uint32_t, std::int64_t, const BorrowedActions&) {},
           py::arg("client"), py::arg("now"), py::arg("actions"), "A filler's process has ended.")
      .def("next_tick", [](DefaultPolicy&) { return std::optional<std::int64_t>(); },
           "When on_tick wants to be called next; asked after every call. None: not at all.")
      .def("on_tick", [](DefaultPolicy&, std::int64_t, const BorrowedActions&) {},
           py::arg("now"), py::arg("actions"), "The instant that next_tick gave.")
      .def("add_counts", [](DefaultPolicy&, const BorrowedCounters&) {}, py::arg("counters"),
           "Asked once, at the end.");
}

}  // namespace

void bind_policy(py::module_& module) {
  bind_actions(module);
  py::class_<BorrowedCounters>(module, "Counters", "What the reader of the result should know.")
      .def("add", &add_count, py::arg("name"), py::arg("severity"), py::arg("help"),
           py::arg("count") = 1, "Adds to a count; a name has one severity and one help.");
  bind_base(module);
}

}  // namespace bubblesim::plugin::python
