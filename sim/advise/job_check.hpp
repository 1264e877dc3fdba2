// Questions that have no answer, found before anything is searched.
#pragma once

#include "sim/advise/question.hpp"
#include "sim/base/result.hpp"
#include "sim/run/loaded_run.hpp"

namespace bubblesim::advise {

/// No filler to advise on; a filler that is larger than every GPU's free memory, with the largest
/// that would do; a p95 that a service could not keep with a GPU of its own, with the least that it
/// could; limits on tokens where no filler is a language-model server. A job that does not fit its
/// GPU cannot be loaded: that fault is sim/run's.
[[nodiscard]] Errors check_job(const Question& question, const run::LoadedRun& loaded);

}  // namespace bubblesim::advise
