// The tables of `bubblesim advise --fleet`: training jobs, and a queue of fill work.
//
// Jobs, a row each: `job` (a name of its own), `hours` (> 0, how long it runs), `gpus` (default: as
// many as were recorded or planned), and what it is: `trace` (a file or folder), or `model`, `plan`
// and `cluster`; optional `device` and `memory` (of one rank, such as 24GB). Work, a row each,
// first come first: `work` (a name), and what it is: `trace`, or `model` with optional `batch`,
// `prompt_tokens` and `output_tokens`; optional `memory`, `requests` (how many are left; default:
// no end) and `weight` (what a GPU-hour of it is worth beside one of training; default 1). Paths
// are relative to the table's folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::advise {

struct FleetJob {
  std::string name;
  std::string place;            ///< "line 12", for faults
  std::string training;         ///< the key "training" of a run config, JSON, paths absolute
  std::string device;           ///< empty: the recorded or planned one
  std::optional<double> gpus;   ///< nothing: as many as its traces or plan have
  double hours = 0;
};

struct FillWork {
  std::string name;
  std::string place;
  std::string filler;           ///< an element of "fillers" of a run config, offline
  std::optional<double> requests;
  double weight = 1;
};

/// All faults of the file at once.
[[nodiscard]] CheckedResult<std::vector<FleetJob>> read_fleet_jobs(const std::string& path);
[[nodiscard]] CheckedResult<std::vector<FillWork>> read_fill_work(const std::string& path);

/// Work without an end: a trace that every job may have as its filler.
[[nodiscard]] FillWork endless_work(const std::string& trace, const std::string& memory);

}  // namespace bubblesim::advise
