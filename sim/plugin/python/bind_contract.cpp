// Enumerations, what a policy is told, and what it returns. sim/policy/policy.hpp says what each
// member means; times are whole nanoseconds, memory is bytes, clients are their numbers.
#include <pybind11/stl.h>

#include "sim/plugin/python/bindings.hpp"
#include "sim/policy/contract_version.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::plugin::python {
namespace {

namespace py = pybind11;
using namespace policy;

void bind_enumerations(py::module_& module) {
  py::enum_<Role>(module, "Role", "What a client is.")
      .value("TRAINING", Role::kTraining)
      .value("OFFLINE", Role::kOffline)
      .value("ONLINE", Role::kOnline);
  py::enum_<WorkKind>(module, "LaunchKind", "What a launch puts on the GPU.")
      .value("KERNEL", WorkKind::kKernel)
      .value("COLLECTIVE", WorkKind::kCollective)
      .value("COPY", WorkKind::kCopy)
      .value("MEMSET", WorkKind::kMemset);
  py::enum_<KernelClass>(module, "KernelBound", "What bounds a kernel.")
      .value("UNKNOWN", KernelClass::kUnknown)
      .value("COMPUTE", KernelClass::kCompute)
      .value("MEMORY", KernelClass::kMemory);
  py::enum_<Verdict>(module, "Verdict", "On a launch: it goes on now, or its thread waits.")
      .value("ADMIT", Verdict::kAdmit)
      .value("HOLD", Verdict::kHold)
      .export_values();
  py::enum_<SharingMode>(module, "SharingMode", "How clients share the GPU.")
      .value("SPATIAL", SharingMode::kSpatial)
      .value("MPS", SharingMode::kMps)
      .value("TIME_SLICED", SharingMode::kTimeSliced)
      .value("PARTITIONED", SharingMode::kPartitioned)
      .value("IDLE_ONLY", SharingMode::kIdleOnly)
      .value("LEFTOVER", SharingMode::kLeftover);
  py::enum_<Preemption>(module, "Preemption", "How running work is driven off the GPU.")
      .value("AFTER_KERNEL", Preemption::kAfterKernel)
      .value("AFTER_BLOCKS", Preemption::kAfterBlocks)
      .value("RESET", Preemption::kReset)
      .value("CONTEXT_SWITCH", Preemption::kContextSwitch);
  py::enum_<Severity>(module, "Severity", "What a count means to the reader of a result.")
      .value("INFO", Severity::kInfo)
      .value("NOTICE", Severity::kNotice)
      .value("LOSS", Severity::kLoss)
      .value("ERROR", Severity::kError);
}

void bind_machine(py::module_& module) {
  py::class_<ClientInfo>(module, "ClientInfo", "One process on the policy's GPU.")
      .def_readonly("id", &ClientInfo::id, "0 is the protected client.")
      .def_readonly("role", &ClientInfo::role, "What it is.")
      .def_readonly("name", &ClientInfo::name, "For people.")
      .def_readonly("memory", &ClientInfo::memory, "Bytes; 0: not known.")
      .def_readonly("memory_known", &ClientInfo::memory_known, "Whether memory is.")
      .def_readonly("pass_ns", &ClientInfo::pass, "A filler's pass alone; 0: not known.")
      .def_readonly("queued", &ClientInfo::queued,
                    "It works off fill jobs, and holds memory only while one is placed here.")
      .def_readonly("ranks", &ClientInfo::ranks,
                    "Training's: GPUs of its job, a rank each; 1 where not known.");
  py::class_<MigGeometry>(module, "MigGeometry", "How MIG cuts the GPU; 0 slices: it does not.")
      .def_readonly("compute_slices", &MigGeometry::compute_slices, "Of the GPU; 0: no MIG.")
      .def_readonly("memory_slices", &MigGeometry::memory_slices, "Of the GPU; 0: no MIG.")
      .def_readonly("slice_sms", &MigGeometry::slice_sms, "SMs of a compute slice.")
      .def("sms_of", &MigGeometry::sms_of, "SMs of an instance of so many compute slices.");
  py::class_<GpuInfo>(module, "GpuInfo", "The GPU as nvidia-smi and the device query show it.")
      .def_readonly("name", &GpuInfo::name, "The product.")
      .def_readonly("sm_count", &GpuInfo::sm_count, "SMs.")
      .def_readonly("tpc_sms", &GpuInfo::tpc_sms, "SMs that a cap takes or leaves together.")
      .def_readonly("priority_changes", &GpuInfo::priority_changes,
                    "Clients' priorities can change while they run.")
      .def_readonly("compute_capability", &GpuInfo::compute_capability, "86 for 8.6; 0: not known.")
      .def_readonly("memory", &GpuInfo::memory, "Bytes.")
      .def_readonly("time_slice_ns", &GpuInfo::time_slice, "A context's turn.")
      .def_readonly("context_switch_ns", &GpuInfo::context_switch, "Idle between two turns.")
      .def_readonly("dram_bandwidth", &GpuInfo::dram_bandwidth, "Bytes a second.")
      .def_readonly("host_bandwidth", &GpuInfo::host_bandwidth, "Bytes a second; 0: not known.")
      .def_readonly("mig", &GpuInfo::mig, "How MIG cuts it.");
}

void bind_infos(py::module_& module) {
  py::class_<LaunchInfo>(module, "LaunchInfo", "A launch call that a host thread makes.")
      .def_readonly("client", &LaunchInfo::client, "Whose.")
      .def_readonly("kind", &LaunchInfo::kind, "Of what.")
      .def_readonly("blocks", &LaunchInfo::blocks, "Of the grid; 0 for copies and memsets.")
      .def_readonly("threads_per_block", &LaunchInfo::threads_per_block,
                    "0 for copies and memsets.")
      .def_readonly("launch", &LaunchInfo::launch,
                    "The client's launches so far, this one included.")
      .def_readonly("profiled_ns", &LaunchInfo::profiled,
                    "Alone on a GPU; only with Needs(kernel_durations).")
      .def_readonly("operations", &LaunchInfo::operations,
                    "Device operations of this call; a CUDA graph has many.")
      .def_readonly("sm_blocks", &LaunchInfo::sm_blocks,
                    "Blocks that the GPU holds at once; 0: not known.")
      .def_readonly("kernel", &LaunchInfo::kernel,
                    "Equal for launches of one function by one client.")
      .def_readonly("bound", &LaunchInfo::bound, "What bounds it; only with Needs(kernel_classes).")
      .def_readonly("waits", &LaunchInfo::waits,
                    "Its thread waits for the verdict; else it has gone on.");
  py::class_<CompletionInfo>(module, "CompletionInfo", "A device operation that ended.")
      .def_readonly("client", &CompletionInfo::client, "Whose.")
      .def_readonly("kind", &CompletionInfo::kind, "Of what.")
      .def_readonly("launch", &CompletionInfo::launch, "Which launch ended.");
  py::class_<BubbleInfo>(module, "BubbleInfo", "A bubble of training that begins.")
      .def_readonly("expected_ns", &BubbleInfo::expected, "Measured length.")
      .def_readonly("free_memory", &BubbleInfo::free_memory, "Bytes free during it; 0: not known.")
      .def_readonly("pipeline", &BubbleInfo::pipeline, "A wait for a pipeline peer.");
  py::class_<IterationInfo>(module, "IterationInfo", "An iteration, or a pass, that ended.")
      .def_readonly("client", &IterationInfo::client, "Whose.")
      .def_readonly("number", &IterationInfo::number, "From 1 on.")
      .def_readonly("length_ns", &IterationInfo::length,
                    "Since the last one's end; a pass: since its first launch.");
}

void bind_decisions(py::module_& module) {
  py::class_<Sharing>(module, "Sharing", "How clients share the GPU, decided before the start.")
      .def(py::init<SharingMode, std::optional<Duration>, std::optional<Duration>, bool, bool,
                    bool>(),
           py::arg("mode") = SharingMode::kSpatial, py::kw_only(),
           py::arg("slice_ns") = py::none(), py::arg("switch_cost_ns") = py::none(),
           py::arg("unified_memory") = false, py::arg("changing_slices") = false,
           py::arg("fillers_share") = false);
  py::class_<ClientSharing>(module, "ClientSharing", "How one client is set up.")
      .def(py::init<std::uint32_t, std::int32_t, std::uint32_t, double, std::optional<Duration>,
                    std::optional<Bytes>, std::optional<Bytes>>(),
           py::kw_only(), py::arg("sm_percentage") = 100, py::arg("priority") = 0,
           py::arg("sms") = 0, py::arg("memory_share") = 1.0, py::arg("slice_ns") = py::none(),
           py::arg("memory_limit") = py::none(), py::arg("resident") = py::none());
  py::class_<Admission>(module, "Admission", "Whether a filler may run on the GPU at all.")
      .def(py::init<bool, std::string>(), py::arg("admitted") = true, py::arg("reason") = "")
      .def_readonly("admitted", &Admission::admitted, "Whether it may run.")
      .def_readonly("reason", &Admission::reason, "Why not.");
  py::class_<Needs>(module, "Needs", "Knowledge that a policy asks for.")
      .def(py::init<bool, bool, bool, bool, bool>(), py::kw_only(),
           py::arg("kernel_durations") = false, py::arg("bubbles") = false,
           py::arg("completions") = false, py::arg("kernel_classes") = false,
           py::arg("iterations") = false);
}

}  // namespace

void bind_contract(py::module_& module) {
  module.attr("CONTRACT_VERSION") = kContractVersion;
  bind_enumerations(module);
  bind_machine(module);
  bind_infos(module);
  bind_decisions(module);
}

}  // namespace bubblesim::plugin::python
