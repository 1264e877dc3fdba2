// A sweep file: a base, which is a run config, and its variations. configs/README.md documents
// every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim {
class JsonDocument;
class ObjectReader;
}  // namespace bubblesim

namespace bubblesim::sweep {

/// Values for one place of the run config, as JSON texts. A place is a JSON pointer in which
/// elements of lists may have names: "/fillers/chat/memory".
struct SweepAxis {
  std::string pointer;
  std::vector<std::string> values;  ///< at least one
};

/// Axes that change together: the n-th value of each at once. A single axis is a zip of one.
struct AxisGroup {
  std::vector<SweepAxis> axes;         ///< at least one, all of one length
  std::vector<store::Setting>
      when;  ///< without all these values in the config: one run, axis unset
  bool when_overridden = false;  ///< an override sets a place of `when`, which may then hold
                                 ///< nowhere
};

/// The run config that a file varies.
struct BaseParts {
  std::string file;  ///< its file; if inside the varying file, that file
  std::string text;  ///< compact JSON; of a file that was only parsed, empty if it is in another
  std::vector<store::Setting> set = {};  ///< changes that the file makes to it
};

struct SweepConfig {
  std::string file;
  std::string name;
  BaseParts base;
  std::vector<AxisGroup> groups;  ///< the sweep is their product; sampled axes are one group
  std::uint32_t repetitions = 1;
  /// Repetition r of every point has seed first_seed + r. Nothing: the base's seed, else 1.
  std::optional<std::uint64_t> first_seed;
};

/// Reads and checks a sweep file and its base, with `overrides` ("/a/b=c", JSON or text) applied to
/// the base; an override of an axis fixes it. All faults at once, except those of each point's run
/// config, which plan_sweep reports.
[[nodiscard]] CheckedResult<SweepConfig> read_sweep_config(
    const std::string& path, const std::vector<std::string>& overrides);

/// Parses the file alone: changes to the base, and a base in another file, are not read. Declares
/// the keys (sim/schema); sim/app/schema_kinds.cpp defines "base", "settings", "values" and
/// "quantity".
[[nodiscard]] CheckedResult<SweepConfig> parse_sweep_config(const JsonDocument& document);

// A file's run config and the changes to it: the keys "name", "comment", "base" and "set" of a
// sweep and of a question (sim/advise).

// The places of a run config that were set so far: none may be set twice, or the earlier value
// would be lost. Inside of sim/sweep and of sim/advise.

class SetPlaces {
 public:
  /// Adds a place. `what` says in faults what sets it: "the axis of ". `config` is the changed one,
  /// in which elements of lists have numbers and names. `group`: the axis's, for its condition;
  /// null: no axis. Returns the fault's text; empty: added, and earlier places stay.
  [[nodiscard]] std::string add(const Json& config, std::string_view what,
                                const std::string& pointer, const AxisGroup* group = nullptr);

 private:
  struct Place {
    std::string named;   // the source and its pointer, as shown
    std::string number;  // the pointer with numbered elements
    const AxisGroup* group = nullptr;
  };

  [[nodiscard]] static std::string fault_of_pair(const Place& earlier, const Place& later);

  std::vector<Place> before_;
};

/// Reads the keys "name", a text that is not empty, and "comment", which is ignored.
[[nodiscard]] std::string read_title(ObjectReader& root);
/// Reads the keys "base" and "set" of the file.
[[nodiscard]] BaseParts read_base(ObjectReader& root, const std::string& file);
/// Reads pointers and their values.
[[nodiscard]] std::vector<store::Setting> read_settings(ObjectReader reader);
/// The base with its changes, checked as JSON; the base's reader checks the run config.
[[nodiscard]] CheckedResult<Json> load_base(const BaseParts& parts, const std::string& file);

// Reads and sets places of a run config by JSON pointer, in the form that people write. Inside of
// sim/sweep.
//
// Elements of lists have numbers and names: "/fillers/0/memory", "/fillers/chat/memory",
// "/policies/specinf/parameters/slice". A policy that is a name alone has a "name", and becomes an
// object when a key of it is set.

/// The keys of a pointer, unescaped. Fault: it does not begin with "/", or has an empty key.
[[nodiscard]] Result<std::vector<std::string>> pointer_keys(std::string_view pointer);

/// The value at the place; null: none, or a faulty pointer.
[[nodiscard]] const Json* find_value(const Json& config, std::string_view pointer);

/// The pointer with numbered list elements, from its beginning as far as the config has the place:
/// all pointers to one place give the same text.
[[nodiscard]] std::string numbered(const Json& config, const std::string& pointer);

/// Sets the value at a pointer; missing objects on the way are made. Fault, at `pointer`: a missing
/// element, a name of two elements, a value on the way that has no keys.
[[nodiscard]] Result<void> set_value(Json& config, const std::string& pointer, const Json& value);

/// The text of a value in its shortest form, objects with their keys in alphabetical order: equal
/// values have equal texts.
[[nodiscard]] std::string canonical_text(const Json& value);

/// The canonical JSON of the value at `pointer`; "none" if it has no value.
[[nodiscard]] std::string text_at(const Json& config, std::string_view pointer);

}  // namespace bubblesim::sweep
