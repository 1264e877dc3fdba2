// What `bubblesim advise` is asked for: its options, and the questions that they make.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/app/app.hpp"
#include "sim/app/run_arguments.hpp"

namespace bubblesim::app {

struct AdviseArguments {
  RunArguments job;  ///< the job, or the question's file as its config
  double keep = advise::Limits{}.keep;
  std::string p95;
  std::string slo;
  std::string want;  ///< empty: online with --p95, --slo or --load, else offline
  std::optional<double> load;
  std::string can;
  std::string cannot;
  std::string policies;
  std::string budget = "60s";
  std::string store;
  std::string config;
  std::string html;
  std::vector<std::string> policy_libraries;
  std::size_t threads = 0;
  bool json = false;
};

void add_advise_options(CLI::App& command, AdviseArguments& arguments);

/// One a mode; or that of a file.
[[nodiscard]] CheckedResult<std::vector<advise::Question>> advise_questions(
    AdviseArguments& arguments, const CLI::App& command, const AppContext& context);

}  // namespace bubblesim::app
