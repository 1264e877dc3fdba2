// A simulated machine: the engine, GPUs, the network in which the ranks of a job meet, and the
// programs on it. Every simulation is built with it: a run under policies (sim/run), a job alone
// (lone_job.hpp), a measured pair (sim/validate), one timed pass, the device of a fake rig.
//
// The machine owns the added parts. A GPU comes first, then the gate of its launches
// (RunSetup::gate), then the programs on it; once time passes, nothing may be added. The machine
// starts no program: the caller that adds a program starts its passes.
//
// GPUs share one engine, unless they are added with a bound: such a GPU is a domain of its own
// (sim/engine/conductor.hpp), and domains run in parallel until ranks may meet; the machine gives
// the conductor that time. Arrivals before a meeting's last one are reported when the window is
// over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/engine/conductor.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/workload/job_program.hpp"
#include "sim/workload/program_run.hpp"

namespace bubblesim::workload {

/// A GPU of a machine, and the engine that drives it.
struct MachineGpu {
  MachineGpu(engine::Engine& shared_engine, const hardware::GpuSpec& spec,
             const gpu::SharingSetup& sharing)
      : engine(shared_engine), gpu(shared_engine, spec, sharing) {}

  engine::Engine& engine;
  gpu::Gpu gpu;
};

class Machine final : private engine::JointContact {
 public:
  /// All GPUs are of this kind. The ranks of `job` may meet; null: no meetings. Both outlive this.
  explicit Machine(const hardware::GpuSpec& spec, const JobProgram* job = nullptr,
                   const engine::ConductorSetup& setup = {});

  /// Adds a GPU to the shared engine, or, with a `bound` (that outlives the machine's last run), to
  /// an engine of its own.
  MachineGpu& add_gpu(const gpu::SharingSetup& sharing = {},
                      const engine::ContactBound* bound = nullptr);

  /// Adds a client to the GPU. RunSetup::rendezvous: network() for a rank of the job, else null.
  ProgramRun& add_program(MachineGpu& gpu, const program::Program& program, const RunSetup& setup);

  [[nodiscard]] const hardware::GpuSpec& spec() const { return spec_; }
  /// The network in which the job's ranks meet; null without a job.
  [[nodiscard]] network::Rendezvous* network() { return network_ ? &*network_ : nullptr; }
  /// The engine of GPUs without a bound, and of parts that belong to no GPU.
  [[nodiscard]] engine::Engine& engine() { return conductor_.shared(); }
  /// Lets time pass, over all engines.
  [[nodiscard]] engine::Conductor& conductor() { return conductor_; }
  [[nodiscard]] const engine::Conductor& conductor() const { return conductor_; }

 private:
  [[nodiscard]] SimTime next_completion(SimTime now) override;
  void after_window() override;

  [[nodiscard]] std::optional<std::uint32_t> place_of(const program::Program& program) const;

  const hardware::GpuSpec& spec_;
  const JobProgram* job_;
  engine::Conductor conductor_;
  std::optional<network::Rendezvous> network_;
  std::vector<std::unique_ptr<MachineGpu>> gpus_;
  std::vector<std::unique_ptr<ProgramRun>> programs_;
  std::vector<ProgramRun*> ranks_;  ///< of `programs_`: ranks that meet, in the order of domains
  std::vector<ProgramRun*> by_place_;  ///< of the job's ranks; null: not added yet
  std::vector<NextMeeting> next_;
  std::vector<network::Arrival> arrivals_;
};

}  // namespace bubblesim::workload
