// Which fill work goes to which training jobs: an answer for each kind of job and work, and the
// split of the jobs' hours of a day among the works.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/answer.hpp"
#include "sim/advise/fleet/fleet_files.hpp"

namespace bubblesim::advise {

/// What is asked beside the tables.
struct FleetQuestion {
  std::string file;                ///< of the jobs, for faults
  std::vector<FleetJob> jobs;
  std::vector<FillWork> work;
  std::string work_file;           ///< likewise; or "--filler"
  Limits limits;                   ///< `keep` counts; works are offline
  SystemChoice system;
  Duration length{};               ///< simulated, of a full trial
  Duration warmup{};
  std::uint64_t seed = 1;
  Duration budget = kDefaultBudget;  ///< of all searches together
};

/// A kind of job with one work: per GPU of the job.
struct KindAnswer {
  std::string reason{};      ///< why it takes none of this work; empty: it can
  std::string setting{};     ///< for people: policy, parameters, places
  std::string policy{};
  double gains = 0;          ///< of a filler's own GPU
  double costs = 0;          ///< share of training that is lost
  double requests_per_s = 0;
  double own_per_s = 0;      ///< requests of the filler's own GPU
  std::string run_config{};  ///< JSON; empty where nothing is gained
};

struct FleetKind {
  std::size_t first = 0;              ///< its first job
  std::size_t jobs = 0;
  std::string device{};
  double own_gpus = 0;                ///< of its traces or plan
  double gpu_hours = 0;               ///< a day
  double bubble = 0;                  ///< share of the time
  std::vector<KindAnswer> answers{};  ///< by work
  std::vector<double> hours{};        ///< GPU-hours a day that each work gets
};

/// A job with a work for some hours of the day.
struct FleetPlacement {
  std::size_t job = 0;
  std::size_t work = 0;
  double hours = 0;
};

struct FleetPlan {
  FleetQuestion question;
  std::vector<FleetKind> kinds;
  std::vector<std::size_t> kind_of;        ///< by job
  std::vector<double> gpus;                ///< by job
  std::vector<FleetPlacement> placements;  ///< by job, then by time
  bool stopped = false;
  std::size_t simulated = 0;               ///< runs, now
  std::size_t stored = 0;

  [[nodiscard]] const KindAnswer& answer_of(const FleetPlacement& placement) const {
    return kinds[kind_of[placement.job]].answers[placement.work];
  }
};

/// A day's hours of a job.
inline constexpr double kHoursOfDay = 24;

/// GPU-hours a day.
struct FleetSum {
  double jobs = 0;      ///< that they have
  double filled = 0;    ///< of them, beside a work
  double gained = 0;    ///< in own GPU-hours of fillers
  double lost = 0;      ///< of training
};
[[nodiscard]] FleetSum sum_of(const FleetPlan& plan);
/// What one work gains: own GPU-hours a day, and requests.
struct WorkSum {
  double gained = 0;
  double requests = 0;
};
[[nodiscard]] WorkSum sum_of_work(const FleetPlan& plan, std::size_t work);

/// Faults, by the tables' lines: jobs that cannot be loaded or do not fit their GPUs, works that
/// cannot be loaded beside a job that can. A work that does not fit beside a job is no fault: that
/// kind takes none of it, and says why.
/// `options.begins` is told of each kind and work.
[[nodiscard]] CheckedResult<FleetPlan> plan_fleet(FleetQuestion question,
                                                  const policy::Registry& registry,
                                                  const AnswerOptions& options);

/// Fills in the split and the placements, from kinds and their answers.
void place_work(FleetPlan& plan);

}  // namespace bubblesim::advise
