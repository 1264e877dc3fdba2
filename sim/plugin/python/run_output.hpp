// What a run leaves for Python: the report as it is, its JSON, and a timeline if one was asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"

namespace bubblesim::plugin::python {

struct RunOutput {
  observe::RunReport report;
  std::string json;  ///< as `bubblesim run --json` prints it
  std::unique_ptr<observe::TimelineRecorder> timeline;  ///< null: none was asked for
};

}  // namespace bubblesim::plugin::python
