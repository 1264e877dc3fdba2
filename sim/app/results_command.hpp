// Inside of `bubblesim results`: what its parts share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/app.hpp"
#include "sim/base/result.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::app {

struct ResultsArguments {
  std::string store;
  std::vector<std::string> policies;
  std::vector<std::string> sweeps;
  std::vector<std::string> fillers;
  std::vector<std::string> settings;  ///< "/a/b=c"
  std::vector<std::string> metrics;
  bool failed = false;
  bool json = false;
  bool csv = false;
  std::size_t limit = 1000;           ///< rows of a list for people; 0: all
  std::string key;
  std::string baseline;
  bool by_point = false;
  double confidence = 0.95;
  std::string format;
  std::string output;
  std::vector<std::string> inputs;
};

struct FilteredStore {
  std::unique_ptr<store::ResultsStore> store;
  store::RowFilter filter;
};

/// The store, to read, and the filter that the options ask for. Fault: a name in it that the store
/// has not.
[[nodiscard]] Result<FilteredStore> open_filtered(const ResultsArguments& arguments);

/// Each prints.
[[nodiscard]] ExitCode list_results(const ResultsArguments& arguments);
[[nodiscard]] ExitCode show_result(const ResultsArguments& arguments);
[[nodiscard]] ExitCode compare_results(const ResultsArguments& arguments);
[[nodiscard]] ExitCode export_results(const ResultsArguments& arguments);
[[nodiscard]] ExitCode check_results(const ResultsArguments& arguments);
[[nodiscard]] ExitCode merge_results(const ResultsArguments& arguments);

}  // namespace bubblesim::app
