// A policy's declaration of itself: its parameters with unit, range, default and source, the
// information that it needs, and its maker. Config checks, help texts and documents are generated
// from these declarations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/demands.hpp"
#include "sim/policy/placement.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policy {

/// A parameter's value. Durations are written with a unit ("5ms") in configs.
using Value = std::variant<bool, std::int64_t, double, Duration, std::string>;

/// "5ms", "0.5", "true": the text in a config.
[[nodiscard]] std::string value_text(const Value& value);

/// A parameter has the type of its default. A number or a duration may also take words ("device"
/// for the device's own constant); if the default is a word, the type is that of the minimum.
struct ParameterSpec {
  std::string name;   ///< snake_case, no unit: durations carry theirs in the value
  Value fallback;     ///< the default
  Value minimum;      ///< inclusive (numbers and durations); strings and bools: ignored
  Value maximum;
  std::vector<std::string> choices;  ///< strings: allowed values, empty: any; others: words
  std::string unit;                  ///< "blocks", "%", "" ...
  std::string help;                  ///< one sentence
  std::string source;                ///< paper and section, code, or "reconstructed: ..."
};

/// The values of one policy's parameters: all declared ones, and no other.
class ParameterSet {
 public:
  ParameterSet() = default;
  explicit ParameterSet(std::map<std::string, Value, std::less<>> values)
      : values_(std::move(values)) {}

  /// Preconditions: declared, and of this type.
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] Duration duration(std::string_view name) const;
  /// A duration that may be a word; nothing if it is one.
  [[nodiscard]] std::optional<Duration> duration_unless_word(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  friend bool operator==(const ParameterSet&, const ParameterSet&) = default;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// Information beyond launches, completions and the clock; measured before the job runs.
struct Needs {
  bool kernel_durations = false;  ///< solo duration of each launch of every client
  bool bubbles = false;           ///< the training job's bubbles, profiled alone
  bool completions = false;       ///< on_completion is called
  bool kernel_classes = false;    ///< each kernel's bounding resource, for every client
  bool iterations = false;        ///< on_iteration is called
  /// on_launch is called. Not needed by a policy that admits every launch unchanged, and whose
  /// ticks do not depend on launches: launches then go on without asking.
  bool launches = true;
};

/// How training's launches pass a policy's gate.
enum class TrainingGate : std::uint8_t {
  kNone,   ///< not at all: its process has no hook
  kTells,  ///< through a hook that only tells of them
  kAsks,   ///< through a hook that may hold them
};

struct PolicySpec {
  std::string name;
  std::string summary;  ///< one line
  std::string source;   ///< paper or code
  Needs needs;
  bool oracle = false;  ///< sees the future; results say so
  /// The unpublished parts of the source, and their replacements: results are then not the
  /// authors', and say so. Empty: none.
  std::string reconstruction;
  std::vector<SystemDemand> demands;  ///< on hardware, driver, framework and privileges
  /// None: kTells, but on a simulated GPU the policy may still hold launches.
  std::function<TrainingGate(const ParameterSet&)> training_gate;
  std::vector<ParameterSpec> parameters;
  /// Parameters that describe the system or a safety margin: a search for the best setting leaves
  /// them unchanged.
  std::vector<std::string> not_searched;
  std::function<std::unique_ptr<Policy>(const ParameterSet&)> make;
  /// How long after the start the policy still tunes itself, if an iteration of training alone
  /// takes `iteration`; none: it is settled at the start.
  std::function<Duration(const ParameterSet&, Duration iteration)> settling;
  /// Makes the placer of a cluster; none: every filler has an instance on each GPU.
  std::function<std::unique_ptr<Placer>(const ParameterSet&)> make_placer;
};

/// All defaults of a policy.
[[nodiscard]] ParameterSet defaults(const PolicySpec& spec);

/// Policies by name, in order of registration. A plain value: a program's main fills one
/// (policies/builtin.hpp) and passes it on.
class Registry {
 public:
  /// Precondition: no policy of this name yet.
  void add(PolicySpec spec);
  [[nodiscard]] const std::vector<PolicySpec>& all() const { return specs_; }
  /// The policy, or a fault that lists the known names and the nearest one.
  [[nodiscard]] Result<const PolicySpec*> find(std::string_view name) const;

 private:
  std::vector<PolicySpec> specs_;
};

}  // namespace bubblesim::policy
