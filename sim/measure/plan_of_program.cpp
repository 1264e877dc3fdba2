// A program as what a process launches: stand-ins' forms for profiles, paths for copies.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/measure/job_plans.hpp"
#include "sim/measure/kernel_forms.hpp"
#include "sim/program/rules.hpp"

namespace bubblesim::measure {
namespace {

// Profilers put the direction into the name: "Memcpy DtoH (Device -> Pinned)".
capture::CopyPath path_of(std::string_view name) {
  using capture::CopyPath;
  if (name.find("DtoH") != std::string_view::npos) return CopyPath::kDeviceToHost;
  if (name.find("DtoD") != std::string_view::npos) return CopyPath::kDeviceToDevice;
  if (name.find("PtoP") != std::string_view::npos) return CopyPath::kDeviceToDevice;
  return CopyPath::kHostToDevice;
}

/// Gives operations their forms; those of one profile whose names are of one kind have one.
class FormWriter {
 public:
  FormWriter(const program::Program& program, const hardware::GpuSpec& device,
             capture::JobPlan& plan)
      : program_(program), device_(device), plan_(plan) {}

  void write(program::Op& op) {
    if (op.name.index() >= program_.names.size()) op.name = plan_.program.names.intern("(unnamed)");
    const std::string& name = plan_.program.names[op.name];
    if (!is_kernel(op.kind)) {
      op.profile = capture::index_in(plan_.copies, {{}, path_of(name)});
    } else if (op.profile != program::kNoIndex) {
      op.profile = form_index(op.profile, op.name, name);
    }
  }

 private:
  std::uint32_t form_index(std::uint32_t profile, NameId id, const std::string& name) {
    const auto [place, fresh] = forms_.try_emplace({profile, id}, program::kNoIndex);
    if (!fresh) return place->second;
    const traces::LaunchShape* shape =
        program_.shapes.size() == program_.profiles.size() ? &program_.shapes[profile] : nullptr;
    place->second = capture::index_in(
        plan_.forms, form_of(program_.profiles[profile], shape, name, device_));
    return place->second;
  }

  const program::Program& program_;
  const hardware::GpuSpec& device_;
  capture::JobPlan& plan_;
  std::map<std::pair<std::uint32_t, NameId>, std::uint32_t> forms_;
};

}  // namespace

capture::JobPlan plan_of_program(const program::Program& program, const hardware::GpuSpec& device,
                                 double slowdown) {
  capture::JobPlan plan;
  plan.program = program;
  plan.program.profiles.clear();
  plan.program.shapes.clear();
  FormWriter forms(program, device, plan);
  for (program::Op& op : plan.program.ops) {
    op.duration = program::duration_of(op, slowdown);
    forms.write(op);
  }
  return plan;
}

}  // namespace bubblesim::measure
