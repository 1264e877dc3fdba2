#include "sim/measure/job_plans.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "sim/base/random.hpp"
#include "sim/program/kernel_class.hpp"
#include "sim/program/rules.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"
#include "sim/workload/estimated_shape.hpp"

namespace bubblesim::measure {
namespace {

using capture::JobPlan;

tl::unexpected<Error> cannot(const run::LoadedRun& run, std::string place,
                             const std::string& what) {
  return fail(run.config.file, std::move(place), "a real GPU cannot run this: " + what);
}

std::string place_of(std::size_t filler, const std::string& key) {
  return "/fillers/" + std::to_string(filler) + "/" + key;
}

void describe_client(JobPlan& plan, ClientId client, const PlanSetup& setup) {
  plan.client = client;
  plan.record_operations = setup.record_operations;
  plan.report_completions = setup.spec != nullptr && setup.spec->needs.completions;
  if (setup.shares == nullptr || client.index() >= setup.shares->size()) return;
  plan.priority = (*setup.shares)[client.index()].priority;
  plan.sms = (*setup.shares)[client.index()].sms;
}

double slowdown_of(const run::LoadedRun& run, std::uint32_t rank) {
  for (const run::Straggler& straggler : run.config.training.stragglers) {
    if (straggler.rank == rank) return straggler.slowdown;
  }
  return 1;
}

Result<void> check_filler(const run::LoadedRun& run, std::size_t index, const PlanSetup& setup) {
  const run::FillerConfig& filler = run.config.fillers[index];
  if (run.server(index) != nullptr) {
    return cannot(run, place_of(index, "program"),
                  "\"" + filler.name +
                      "\" batches continuously, so that what its iterations launch depends on the "
                      "requests in them; expected batches of a fixed program");
  }
  if (filler.mode == observe::FillerMode::kJobs) {
    return cannot(run, place_of(index, "jobs"),
                  "\"" + filler.name +
                      "\" is a queue of fill jobs, which a scheduler of several GPUs deals out; "
                      "expected mode offline or online");
  }
  if (filler.instances && setup.spec != nullptr && setup.spec->make_placer) {
    return cannot(run, place_of(index, "instances"),
                  "policy " + setup.spec->name + " places the instances of \"" + filler.name +
                      "\" among the GPUs of the whole job; expected gpus instead");
  }
  return {};
}

/// As ArrivalRouter deals them where there is one instance.
Result<void> draw_arrivals(const run::LoadedRun& run, std::size_t index, Duration length,
                           PlannedJob& job) {
  const run::FillerConfig& filler = run.config.fillers[index];
  if (length <= Duration{}) {
    return fail(run.config.file, place_of(index, "arrivals"),
                "the requests of \"" + filler.name +
                    "\" have no end: the run has no duration, and no length was given");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      auto process,
      workload::make_arrivals(*filler.arrivals,
                              RandomStream(run.config.seed, "arrivals of " + filler.name)));
  Duration last{};
  for (auto next = process->next(); next; next = process->next()) {
    last = std::max(last, *next - kSimStart);
    if (last > length) break;
    job.plan.serve->arrivals.push_back(last);
  }
  job.counters.merge(process->counters());
  return {};
}

}  // namespace

Result<PlannedJob> training_plan(const run::LoadedRun& run, const PlanSetup& setup) {
  const run::RunConfig& config = run.config;
  if (run.training->ranks.size() != 1) {
    return cannot(run, "/training",
                  "the job has " + std::to_string(run.training->ranks.size()) +
                      " ranks; expected one of them by itself");
  }
  if (config.training.jitter_cv > 0) {
    return cannot(run, "/training/jitter_cv",
                  "durations that are drawn anew for each iteration; expected 0");
  }
  const program::Program& program = run.training->ranks.front();
  PlannedJob job{plan_of_program(program, run.device, slowdown_of(run, program.rank)), {}};
  JobPlan& plan = job.plan;
  plan.name = "training rank " + std::to_string(program.rank);
  plan.role = policy::Role::kTraining;
  plan.memory = run.memory_of(0).value_or(Bytes{});
  plan.loop = capture::LoopMode{config.iterations.value_or(0)};
  describe_client(plan, ClientId{0}, setup);
  if (setup.bubbles != nullptr && setup.spec != nullptr && setup.spec->needs.bubbles) {
    plan.bubbles = *setup.bubbles;
  }
  return job;
}

Result<PlannedJob> filler_plan(const run::LoadedRun& run, std::size_t filler, ClientId client,
                               const PlanSetup& setup) {
  BUBBLESIM_RETURN_IF_ERROR(check_filler(run, filler, setup));
  const run::FillerConfig& config = run.config.fillers[filler];
  PlannedJob job{plan_of_program(run.fillers[filler]->program, run.device), {}};
  JobPlan& plan = job.plan;
  plan.name = config.name;
  plan.role = run::role_of(config);
  plan.memory = config.memory.value_or(Bytes{});
  plan.program.start_offset = {};  // a service begins its passes itself
  describe_client(plan, client, setup);
  plan.serve.emplace();
  plan.serve->online = config.mode == observe::FillerMode::kOnline;
  plan.serve->batching = config.batching;
  if (!plan.serve->online) return job;
  const Duration length =
      setup.length > Duration{} ? setup.length : run.config.duration.value_or(Duration{});
  BUBBLESIM_RETURN_IF_ERROR(draw_arrivals(run, filler, length, job));
  return job;
}

// A program as what a process launches: stand-ins' forms for profiles, paths for copies.

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

namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr std::uint64_t kMostGridX = (std::uint64_t{1} << 31U) - 1;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint32_t kMostRegisters = 255;

bool fits(const traces::LaunchShape& shape, const program::KernelProfile& profile,
          const hardware::GpuSpec& spec) {
  const program::LaunchNeeds needs = workload::launch_needs(shape);
  return needs.blocks == profile.blocks &&
         program::residency_of(needs, spec.sm).blocks_per_sm == profile.residency.blocks_per_sm;
}

}  // namespace

traces::LaunchShape shape_of(const program::KernelProfile& profile, const hardware::GpuSpec& spec) {
  const program::Residency& residency = profile.residency;
  const std::uint32_t warp = std::max<std::uint32_t>(1, spec.sm.warp_size);
  traces::LaunchShape shape;
  const std::uint64_t rows = (profile.blocks + kMostGridX - 1) / kMostGridX;
  shape.grid = {static_cast<std::uint32_t>((profile.blocks + rows - 1) / rows),
                static_cast<std::uint32_t>(rows), 1};
  const std::uint32_t threads = std::clamp(residency.warps * warp, warp, kMostThreads);
  shape.block = {threads, 1, 1};
  shape.registers_per_thread =
      static_cast<std::uint16_t>(std::min(kMostRegisters, residency.registers / threads));
  const std::uint64_t reserved = spec.sm.shared_memory_reserved_bytes;
  const std::uint64_t shared = residency.shared_memory_bytes;
  shape.shared_memory_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(shared > reserved ? shared - reserved : 0,
                              std::numeric_limits<std::uint32_t>::max()));
  return shape;
}

capture::KernelForm form_of(const program::KernelProfile& profile, const traces::LaunchShape* shape,
                            std::string_view name, const hardware::GpuSpec& spec) {
  capture::KernelForm form;
  form.shape = shape != nullptr && fits(*shape, profile, spec) ? *shape : shape_of(profile, spec);
  form.bound = profile.kernel_class;
  form.tensor = program::classify_kernel(name) == program::KernelClass::kCompute;
  form.dram_share = profile.dram_share;
  form.issue_share = profile.issue_share;
  return form;
}

program::KernelProfile class_profile_of(const capture::KernelForm& form,
                                    const hardware::GpuSpec& spec) {
  return program::profile_kernel(workload::launch_needs(form.shape), form.bound, spec);
}

program::KernelProfile profile_of(const capture::KernelForm& form, const hardware::GpuSpec& spec) {
  program::KernelProfile profile = class_profile_of(form, spec);
  profile.dram_share = form.dram_share;
  profile.issue_share = form.issue_share;
  return profile;
}

}  // namespace bubblesim::measure
