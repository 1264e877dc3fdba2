// The GPU on which `measure` and `calibrate` run: the machine's GPU or a fake one, with everything
// that a rig needs to start its processes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "capture/rig/rig.hpp"
#include "capture/substrate/card_state.hpp"
#include "sim/app/shared/app.hpp"
#include "sim/app/shared/own_process.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/result.hpp"
#include "sim/hardware/gpu_spec.hpp"
#include "sim/observe/run_result.hpp"

namespace CLI {
class App;
}

namespace bubblesim::app {

struct PlaceArguments {
  bool fake = false;
  std::string gpu;
  std::string worker;
  std::string fits;
  std::string spin = "50us";
};

void add_place_options(CLI::App& command, PlaceArguments& arguments);

/// An opened GPU. A signal that StopSignals counts stops the runs on it.
class GpuPlace {
 public:
  /// `device`: the spec that a fake GPU has. Faults: no worker program; no GPU, or no NVML.
  [[nodiscard]] static Result<std::unique_ptr<GpuPlace>> open(const PlaceArguments& arguments,
                                                              const hardware::GpuSpec& device,
                                                              run::ProgressText progress);

  [[nodiscard]] const capture::RigPlace& rig() const { return rig_; }
  /// Driver and date, and the SM clock when the GPU was opened and now.
  [[nodiscard]] observe::Measurement measurement() const;
  /// Fault: a setting of the card has changed since the GPU was opened.
  [[nodiscard]] Result<void> check_settings() const;

 private:
  GpuPlace() = default;
  Result<void> read_card(const std::string& gpu);

  std::unique_ptr<ScratchFolder> folder_;
  std::unique_ptr<capture::FakeGpu> fake_;
  std::unique_ptr<capture::CardReader> reader_;
  std::optional<capture::CardState> before_;
  std::string date_;
  capture::RigPlace rig_;
  StopSignals signals_;
  std::atomic<bool> stop_{false};
  std::optional<Ticker> watch_;
};

}  // namespace bubblesim::app
