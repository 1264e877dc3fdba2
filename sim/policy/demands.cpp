#include "sim/policy/demands.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"
#include "sim/base/nearest.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::policy {
namespace {

constexpr std::array<FeatureText, 11> kFeatures{{
    {SystemFeature::kTimeSlicing, "time_slicing", "processes take turns, the driver's default"},
    {SystemFeature::kMps, "mps", "a daemon of MPS that all processes connect to"},
    {SystemFeature::kMig, "mig", "a GPU with MIG, and root to make its instances"},
    {SystemFeature::kOneProcess, "one_process", "training and fillers in one process"},
    {SystemFeature::kGreenContexts, "green_contexts",
     "CUDA 12.4, and programs that make green contexts"},
    {SystemFeature::kChangingPriority, "changing_priority",
     "a client's priority, or its part of the SMs, changes while it runs, as by streams"},
    {SystemFeature::kLaunchInterception, "launch_interception",
     "a library before the driver's in every process, such as that of `bubblesim fill`"},
    {SystemFeature::kFrameworkHook, "framework_hook",
     "a training framework that says where its iterations or bubbles are"},
    {SystemFeature::kUnifiedMemory, "unified_memory",
     "allocations as managed memory, which the driver pages"},
    {SystemFeature::kRewrittenKernels, "rewritten_kernels",
     "fillers' kernels compiled or translated anew"},
    {SystemFeature::kDriverPatch, "driver_patch",
     "a changed kernel module of the driver, or calls that no manual has"},
}};

bool holds(const SystemDemand& demand, const ParameterSet& parameters) {
  if (demand.parameter.empty()) return true;
  for (const auto& [name, value] : parameters) {
    if (name != demand.parameter) continue;
    return std::ranges::find(demand.values, value_text(value)) != demand.values.end();
  }
  return false;
}

}  // namespace

std::span<const FeatureText> feature_texts() { return kFeatures; }

std::string_view feature_word(SystemFeature feature) {
  const auto found = std::ranges::find(kFeatures, feature, &FeatureText::feature);
  BUBBLESIM_CHECK(found != kFeatures.end(), "a system feature without a word");
  return found->word;
}

Result<SystemFeature> find_feature(std::string_view word) {
  std::vector<std::string> words;
  for (const FeatureText& text : kFeatures) {
    if (text.word == word) return text.feature;
    words.emplace_back(text.word);
  }
  return fail(unknown_name_message("system feature", word, words));
}

std::vector<SystemFeature> demanded(const PolicySpec& spec, const ParameterSet& parameters) {
  std::vector<SystemFeature> features;
  for (const SystemDemand& demand : spec.demands) {
    const bool known = std::ranges::find(features, demand.feature) != features.end();
    if (!known && holds(demand, parameters)) features.push_back(demand.feature);
  }
  return features;
}

std::string demands_text(const PolicySpec& spec) {
  std::string text;
  for (const SystemDemand& demand : spec.demands) {
    text += (text.empty() ? "" : ", ") + std::string(feature_word(demand.feature));
    if (demand.parameter.empty()) continue;
    std::string values;
    for (const std::string& value : demand.values) values += (values.empty() ? "" : " or ") + value;
    text += " (" + demand.parameter + " = " + values + ")";
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace bubblesim::policy
