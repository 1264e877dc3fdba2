// A policy's demands on its system: on hardware, driver, framework and privileges. A system that
// lacks a demanded feature cannot run the policy, however good it is.
//
// A feature has a word ("mps", "driver_patch"), which config files and options use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::policy {

struct PolicySpec;
class ParameterSet;

enum class SystemFeature : std::uint8_t {
  kTimeSlicing,         ///< the driver's default for processes
  kMps,                 ///< an MPS daemon, and clients that connect to it
  kMig,                 ///< a GPU that can be divided into instances, and root to do so
  kOneProcess,          ///< training and fillers in one process
  kGreenContexts,       ///< CUDA 12.4, and programs that create their contexts as green ones
  kChangingPriority,    ///< a client's priority changes while it runs
  kLaunchInterception,  ///< a library that intercepts the driver, in every process
  kFrameworkHook,       ///< training's framework reports its progress
  kUnifiedMemory,       ///< allocations become managed memory, which the driver pages
  kRewrittenKernels,    ///< fillers' kernels are recompiled or translated
  kDriverPatch,         ///< a changed kernel module, or undocumented driver calls
};

struct FeatureText {
  SystemFeature feature;
  std::string_view word;
  std::string_view meaning;  ///< half a sentence
};

/// All features, each once.
[[nodiscard]] std::span<const FeatureText> feature_texts();
[[nodiscard]] std::string_view feature_word(SystemFeature feature);
/// The feature of a word, or a fault that lists the known ones and the nearest.
[[nodiscard]] Result<SystemFeature> find_feature(std::string_view word);

/// A feature that is needed always, or while a parameter has one of these values.
struct SystemDemand {
  SystemFeature feature;
  std::string parameter{};            ///< empty: always
  std::vector<std::string> values{};  ///< as a config writes them
};

/// The policy's demands with these parameters, in the order of its declaration.
[[nodiscard]] std::vector<SystemFeature> demanded(const PolicySpec& spec,
                                                  const ParameterSet& parameters);

/// "mps, driver_patch (level = 3)"; "nothing".
[[nodiscard]] std::string demands_text(const PolicySpec& spec);

}  // namespace bubblesim::policy
