// bubblesim advise --fleet: which fill work goes to which of many jobs.
#pragma once

#include "sim/app/advise_arguments.hpp"

namespace bubblesim::app {

[[nodiscard]] ExitCode advise_fleet(AdviseArguments& arguments, const CLI::App& command,
                                    AppContext& context);

}  // namespace bubblesim::app
