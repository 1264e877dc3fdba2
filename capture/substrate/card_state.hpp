// The GPU's settings and state, read before and after a run and never set: if a setting changes
// during a run, the run is invalid.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// An empty field: unknown to the card or its NVML.
struct CardState {
  std::string name;
  std::string uuid;  ///< "GPU-..."; CUDA_VISIBLE_DEVICES takes it
  std::string driver;
  std::optional<std::uint32_t> sm_count;
  std::optional<std::uint64_t> memory_bytes;  ///< all of it, including the driver's own
  std::optional<std::uint64_t> free_bytes;    ///< free for processes; a state, not a setting
  // Settings.
  std::optional<std::string> compute_mode;  ///< Default, ExclusiveProcess, Prohibited
  std::optional<std::string> mig;           ///< Disabled, Enabled
  std::optional<std::string> persistence;   ///< Disabled, Enabled
  std::optional<std::uint32_t> power_limit_mw;
  std::optional<std::uint32_t> max_sm_clock_mhz;
  std::optional<std::uint32_t> sm_clock_mhz;  ///< a state, for reports
};

/// Changes of settings, a sentence each: "compute mode was Default, is now ExclusiveProcess".
/// Empty: nothing changed. A setting unknown on either side is not compared.
[[nodiscard]] std::vector<std::string> setting_changes(const CardState& before,
                                                       const CardState& after);
/// The changes of setting_changes as a fault that names the card.
[[nodiscard]] Result<void> settings_unchanged(const CardState& before, const CardState& after);

class CardReader {
 public:
  /// Faults: no such library; a library without the functions of every NVML; no driver.
  [[nodiscard]] static Result<std::unique_ptr<CardReader>> open(
      const std::string& library = "libnvidia-ml.so.1");
  virtual ~CardReader() = default;

  /// `device`: an index as in nvidia-smi, or a UUID or its beginning. Fault: no such card, with the
  /// cards that exist.
  [[nodiscard]] virtual Result<CardState> read(const std::string& device) const = 0;
};

}  // namespace bubblesim::capture
