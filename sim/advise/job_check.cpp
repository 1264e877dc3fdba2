#include "sim/advise/job_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/base/units.hpp"
#include "sim/run/measure_pass.hpp"

namespace bubblesim::advise {
namespace {

std::string gigabytes(Bytes bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes.value) * 1e-9);
}

Bytes most_free(const run::LoadedRun& loaded, const run::FillerConfig& filler) {
  Bytes most{};
  for (std::uint32_t gpu = 0; gpu < loaded.training->ranks.size(); ++gpu) {
    if (filler.gpus && std::ranges::find(*filler.gpus, gpu) == filler.gpus->end()) continue;
    const Bytes used = loaded.memory_of(gpu).value_or(Bytes{});
    most = std::max(most, Bytes{loaded.device.memory.value -
                                std::min(used, loaded.device.memory).value});
  }
  return most;
}

/// Paging takes what does not fit, if the system is said to have it.
bool may_page(const Question& question) {
  return question.system.can && question.system.has(policy::SystemFeature::kUnifiedMemory);
}

std::optional<Error> memory_fault(const Question& question, const run::LoadedRun& loaded,
                                  std::size_t filler) {
  const run::FillerConfig& config = loaded.config.fillers[filler];
  const Bytes memory = config.memory.value_or(Bytes{});
  const Bytes free = most_free(loaded, config);
  if (loaded.device.memory == Bytes{} || memory <= free || may_page(question)) return std::nullopt;
  return Error{question.base_file, "/fillers/" + std::to_string(filler) + "/memory",
               "filler " + config.name + " needs " + gigabytes(memory) +
                   ", and no GPU has more than " + gigabytes(free) +
                   " free beside training; expected at most that, or a system that pages (--can "
                   "unified_memory,...)"};
}

std::optional<Error> latency_fault(const Question& question, const run::LoadedRun& loaded,
                                   std::size_t filler) {
  const run::FillerConfig& config = loaded.config.fillers[filler];
  if (!question.limits.p95 || config.mode != observe::FillerMode::kOnline ||
      loaded.server(filler) != nullptr) {
    return std::nullopt;
  }
  const Duration pass = run::measure_pass(*loaded.fillers[filler], loaded.device);
  if (pass <= *question.limits.p95) return std::nullopt;
  return Error{question.file, "/p95",
               "found " + format_duration(*question.limits.p95) + ", but filler " + config.name +
                   " takes " + format_duration(pass) +
                   " for a pass with a GPU of its own; expected at least that"};
}

std::optional<Error> token_fault(const Question& question, const run::LoadedRun& loaded) {
  const TokenLatency& slo = question.limits.slo;
  if (!slo.ttft && !slo.tpot) return std::nullopt;
  for (std::size_t i = 0; i < loaded.config.fillers.size(); ++i) {
    if (loaded.server(i) != nullptr) return std::nullopt;
  }
  return Error{question.file, "/slo",
               "found limits on tokens, but no filler is a language-model server; expected a "
               "program with \"engine\", or p95, the latency of whole requests"};
}

}  // namespace

Errors check_job(const Question& question, const run::LoadedRun& loaded) {
  Errors faults;
  if (loaded.config.fillers.empty()) {
    faults.push_back({question.base_file, "/fillers", "found none; expected what may fill the "
                                                      "bubbles: at least one filler"});
  }
  if (const auto fault = token_fault(question, loaded)) faults.push_back(*fault);
  for (std::size_t i = 0; i < loaded.config.fillers.size(); ++i) {
    for (const auto& fault : {memory_fault(question, loaded, i),
                              latency_fault(question, loaded, i)}) {
      if (fault) faults.push_back(*fault);
    }
  }
  return faults;
}

}  // namespace bubblesim::advise
