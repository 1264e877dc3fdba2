// A sweep file: a run config, its base, what varies in it. configs/README.md documents every key.
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

/// Values of one place of the run config, as JSON texts. A place is a JSON pointer, in which
/// elements of lists may be named: "/fillers/chat/memory".
struct SweepAxis {
  std::string pointer;
  std::vector<std::string> values;  ///< at least one
};

/// Axes that move together: the n-th value of each at once. One axis alone is a zip of one.
struct AxisGroup {
  std::vector<SweepAxis> axes;         ///< at least one, all of one length
  std::vector<store::Setting>
      when;  ///< applies where the config holds all of these, else once, unset
  bool when_overridden = false;  ///< an override says something of `when`: it may hold nowhere
};

struct SweepConfig {
  std::string file;
  std::string name;
  std::string base;               ///< the run config, compact JSON
  std::string base_file;          ///< where it is written; the sweep's own file if inside it
  std::vector<AxisGroup> groups;  ///< the product of all; sampled axes are one group
  std::uint32_t repetitions = 1;
  /// Repetition r of every point has seed first_seed + r. Nothing: the base's seed, else 1.
  std::optional<std::uint64_t> first_seed;
};

/// Reads and checks a sweep file and its base, with `overrides` ("/a/b=c", JSON or text) put on the
/// base; an override of an axis fixes it. All faults at once; those of the run config of each
/// point: plan_sweep.
[[nodiscard]] CheckedResult<SweepConfig> read_sweep_config(
    const std::string& path, const std::vector<std::string>& overrides);

/// The file alone: changes to the base, and the base where it is a file, are not read. Says which
/// keys there are (sim/schema); "base", "settings", "values" and "quantity" are defined by
/// sim/app/schema_kinds.cpp.
[[nodiscard]] CheckedResult<SweepConfig> parse_sweep_config(const JsonDocument& document);

// The run config that a file is about, and what the file changes of it: the keys "name", "comment",
// "base" and "set" of a sweep and of a question (sim/advise).

// Which places of a run config are set, one after another: no later one may overwrite an earlier
// one, which would be lost. Inside of sim/sweep and of sim/advise.

class SetPlaces {
 public:
  /// `what` says in faults what sets the place: "the axis of ". `config` is the one that is set, by
  /// which elements of lists are called by number or by name. `group`: of an axis that may have a
  /// condition. The text of the fault; empty: what was added before stays.
  [[nodiscard]] std::string add(const Json& config, std::string_view what,
                                const std::string& pointer, const AxisGroup* group = nullptr);

 private:
  struct Place {
    std::string named;   // what sets it, and its pointer, as they are shown
    std::string number;  // the pointer with elements by number
    const AxisGroup* group = nullptr;
  };

  [[nodiscard]] static std::string fault_of_pair(const Place& earlier, const Place& later);

  std::vector<Place> before_;
};

/// What a file says of its base.
struct BaseParts {
  std::string file;  ///< where the base is written
  std::string text;  ///< the base, if it is inside; else empty
  std::vector<store::Setting> set;
};

/// The keys "name", a text that is not empty, and "comment", which says nothing.
[[nodiscard]] std::string read_title(ObjectReader& root);
/// The keys "base" and "set" of the file.
[[nodiscard]] BaseParts read_base(ObjectReader& root, const std::string& file);
/// Pointers and the values at them.
[[nodiscard]] std::vector<store::Setting> read_settings(ObjectReader reader);
/// The base with what is set, checked as JSON; its reader checks whether it is a run config.
[[nodiscard]] CheckedResult<Json> load_base(const BaseParts& parts, const std::string& file);

// Places of a run config by JSON pointer: reading and setting them as a person means it. Inside of
// sim/sweep.
//
// Elements of lists are named by number or by their name: "/fillers/0/memory",
// "/fillers/chat/memory", "/policies/specinf/parameters/slice". A policy that is a name alone has
// its "name", and becomes an object when something in it is set.

/// The keys of a pointer, unescaped. Fault: it does not begin with "/", or has an empty key.
[[nodiscard]] Result<std::vector<std::string>> pointer_keys(std::string_view pointer);

/// The value at the place; null if there is none. Faults are not told apart from absence.
[[nodiscard]] const Json* find_value(const Json& config, std::string_view pointer);

/// The pointer with elements of lists by number, however it names them; as it is from where the
/// config has no such place on: pointers of one place have one such text.
[[nodiscard]] std::string numbered(const Json& config, const std::string& pointer);

/// Sets the value at a pointer; objects that are missing on the way are made. Fault, at `pointer`:
/// an element that is not there, a name that two elements have, a value on the way that has no
/// keys.
[[nodiscard]] Result<void> set_value(Json& config, const std::string& pointer, const Json& value);

/// "/a/b=c" as a pointer and a value: JSON, and what is none is a text. The leading "/" may be left
/// out. Fault: no such form; `option` names it in the fault.
[[nodiscard]] Result<store::Setting> parse_assignment(const std::string& text,
                                               const std::string& option);

/// The text of a value in its shortest form, objects with their keys in alphabetical order: equal
/// values have equal texts.
[[nodiscard]] std::string canonical_text(const Json& value);

/// The text of the value at the place, "none" where there is none: for keys.
[[nodiscard]] std::string text_at(const Json& config, std::string_view pointer);

}  // namespace bubblesim::sweep
