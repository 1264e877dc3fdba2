// The class Placer, and what it is told. sim/policy/placement.hpp says what each member means.
#include <pybind11/stl.h>

#include <utility>

#include "sim/base/units.hpp"
#include "sim/plugin/python/bindings.hpp"
#include "sim/plugin/python/python_placer.hpp"

namespace bubblesim::plugin::python {
namespace {

using namespace policy;

/// The base class in Python.
struct BasePlacer {};

class PythonPlacer final : public Placer {
 public:
  PythonPlacer(py::object object, RunFault& fault) : object_(std::move(object)), fault_(fault) {}
  ~PythonPlacer() override {
    const py::gil_scoped_acquire lock;
    object_ = py::object();
  }
  PythonPlacer(const PythonPlacer&) = delete;
  PythonPlacer& operator=(const PythonPlacer&) = delete;

  std::vector<Placement> place(std::span<const JobInfo> waiting, std::span<const GpuState> gpus,
                               Instant now) override {
    const py::gil_scoped_acquire lock;
    const std::string where = "place at " + format_duration(now);
    py::object given;
    try {
      given = object_.attr("place")(std::vector<JobInfo>(waiting.begin(), waiting.end()),
                                    std::vector<GpuState>(gpus.begin(), gpus.end()), to_ns(now));
      using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
      std::vector<Placement> placed;
      for (const auto& [job, gpu] : given.cast<Pairs>()) {
        placed.push_back({job, GpuId{gpu}});
      }
      return placed;
    } catch (py::error_already_set& raised) {
      throw told(raised, where, fault_);
    } catch (const py::builtin_exception&) {
      throw std::runtime_error(where + " returned " + py::repr(given).cast<std::string>() +
                               ", expected a list of (job, gpu)");
    }
  }

 private:
  py::object object_;
  RunFault& fault_;
};

void bind_states(py::module_& module) {
  py::class_<GpuState>(module, "GpuState", "A GPU of the job's, as a cluster's scheduler sees it.")
      .def_property_readonly("id", [](const GpuState& self) { return self.id.value; }, "From 0.")
      .def_property_readonly("memory", [](const GpuState& self) { return self.memory.value; },
                             "Bytes of the device.")
      .def_property_readonly("used", [](const GpuState& self) { return self.used.value; },
                             "Bytes of training and of what is placed on it.")
      .def_property_readonly(
          "bubble_memory", [](const GpuState& self) { return self.bubble_memory.value; },
          "Least bytes that training leaves free during bubbles; 0: not known.")
      .def_property_readonly("iteration_ns", [](const GpuState& self) {
        return to_ns(self.iteration);
      }, "Of training alone; 0: not known.")
      .def_property_readonly("bubble_ns", [](const GpuState& self) {
        return to_ns(self.bubble_time);
      }, "Of an iteration, in bubbles; only with Needs(bubbles).")
      .def_property_readonly("pipeline_ns", [](const GpuState& self) {
        return to_ns(self.pipeline_time);
      }, "Of that, waits for pipeline peers.")
      .def_readonly("request", &GpuState::request, "SM shares promised to what is placed on it.")
      .def_readonly("limit", &GpuState::limit, "SM shares that it may use at most.")
      .def_readonly("jobs", &GpuState::jobs, "Placed on it and not ended.");
}

void bind_jobs(py::module_& module) {
  py::class_<JobInfo>(module, "JobInfo", "An instance of a filler, or a fill job, to be placed.")
      .def_readonly("id", &JobInfo::id, "In order of submission.")
      .def_readonly("kind", &JobInfo::kind, "Equal for instances, and for jobs, of one filler.")
      .def_readonly("name", &JobInfo::name, "Of the filler.")
      .def_readonly("role", &JobInfo::role, "What it is.")
      .def_property_readonly("memory", [](const JobInfo& self) { return self.memory.value; },
                             "Bytes on a device; 0: not known.")
      .def_readonly("memory_known", &JobInfo::memory_known, "Whether memory is.")
      .def_readonly("request", &JobInfo::request, "SM share that it asks for; 0: not said.")
      .def_readonly("limit", &JobInfo::limit, "SM share that it can use; 0: not said.")
      .def_property_readonly("work_ns", [](const JobInfo& self) { return to_ns(self.work); },
                             "On a GPU of its own; 0: endless.")
      .def_property_readonly("deadline_ns", [](const JobInfo& self) {
        return self.deadline ? std::optional(to_ns(*self.deadline)) : std::nullopt;
      }, "An instant, or None.")
      .def_property_readonly("submitted_ns", [](const JobInfo& self) {
        return to_ns(self.submitted);
      }, "An instant.");
}

}  // namespace

std::unique_ptr<Placer> placer_of(py::object object, RunFault& fault) {
  if (!py::isinstance<BasePlacer>(object)) {
    throw std::runtime_error("make_placer made " + py::repr(object).cast<std::string>() +
                             ", expected an instance of a subclass of bubblesim.Placer");
  }
  return std::make_unique<PythonPlacer>(std::move(object), fault);
}

void bind_placer(py::module_& module) {
  bind_states(module);
  bind_jobs(module);
  py::class_<BasePlacer>(module, "Placer", "Which fillers run on which GPUs; derive from it.")
      .def(py::init<>())
      .def("place", [](BasePlacer&, const std::vector<JobInfo>&, const std::vector<GpuState>&,
                       std::int64_t) { return py::list(); },
           py::arg("waiting"), py::arg("gpus"), py::arg("now"),
           "At the start, and whenever a job is submitted or has ended: a list of (job's id, "
           "GPU's id) of what begins now. What is not placed waits.");
}

}  // namespace bubblesim::plugin::python
