// What runs of one process share: training jobs and fillers' programs, loaded once each however
// many threads ask. Thread-safe.
//
// What is in use is shared always; of what is not, that which was used last is kept, up to a
// number of bytes of programs.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/run/run_inputs.hpp"

namespace bubblesim::sweep {

inline constexpr std::size_t kInputBytesKept = std::size_t{1} << 30;

/// About the bytes of a program in memory.
[[nodiscard]] std::size_t bytes_of(const program::Program& program);

class InputCache {
 public:
  explicit InputCache(std::string device_folder, std::size_t bytes_kept = kInputBytesKept);
  ~InputCache();

  /// Loads as load_run does. `json`: the config, paths absolute; what it says of programs is the
  /// key.
  [[nodiscard]] CheckedResult<run::LoadedRun> load(const run::RunConfig& config, const Json& json);
  /// How often something was loaded.
  [[nodiscard]] std::size_t loads() const;

 private:
  template <class Inputs>
  class Shelf;
  struct Use;

  std::string device_folder_;
  std::size_t bytes_kept_;
  std::unique_ptr<Use> use_;
  std::unique_ptr<Shelf<run::TrainingInputs>> trainings_;
  std::unique_ptr<Shelf<run::FillerInputs>> fillers_;
};

}  // namespace bubblesim::sweep
