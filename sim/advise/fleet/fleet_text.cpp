#include "sim/advise/fleet/fleet_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/json.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::advise {
namespace {

const std::string& kind_name(const FleetPlan& plan, std::size_t kind) {
  return plan.question.jobs[plan.kinds[kind].first].name;
}

/// Two digits; what rounds to nothing is 0.00, not -0.00.
std::string two_digits(double number) {
  constexpr double kHalfOfLast = 0.005;
  return fmt::format("{:.2f}", std::abs(number) < kHalfOfLast ? 0.0 : number);
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

/// A kind's works that it takes; a line with the reason where it takes none.
void add_kind(const FleetPlan& plan, std::size_t place, TextTable& table) {
  const FleetKind& kind = plan.kinds[place];
  const std::string jobs = std::to_string(kind.jobs);
  const std::string hours = fmt::format("{:.1f}", kind.gpu_hours);
  bool listed = false;
  for (std::size_t work = 0; work < kind.answers.size(); ++work) {
    if (kind.hours[work] <= 0) continue;
    const KindAnswer& answer = kind.answers[work];
    table.row({listed ? "" : kind_name(plan, place), listed ? "" : jobs, listed ? "" : hours,
               plan.question.work[work].name, fmt::format("{:.1f}", kind.hours[work]),
               two_digits(kind.hours[work] * answer.gains),
               two_digits(kind.hours[work] * answer.costs),
               fmt::format("{:.4f}", 1 - answer.costs), answer.setting});
    listed = true;
  }
  if (listed) return;
  std::string why = kind.answers.empty() ? "" : kind.answers.front().reason;
  if (why.empty()) why = "no work pays under the setting that gains most, or none is left";
  table.row({kind_name(plan, place), jobs, hours, "-", "", "", "", "", why});
}

std::string kinds_table(const FleetPlan& plan) {
  using enum Align;
  TextTable table({"kind", "jobs", "GPU-h", "work", "GPU-h filled", "gained", "lost", "keeps",
                   "setting"},
                  {kLeft, kRight, kRight, kLeft, kRight, kRight, kRight, kRight, kLeft});
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) add_kind(plan, kind, table);
  return table.text();
}

std::string works_table(const FleetPlan& plan) {
  using enum Align;
  TextTable table({"work", "gained, GPU-h", "requests a day", "of the queue"},
                  {kLeft, kRight, kRight, kRight});
  for (std::size_t work = 0; work < plan.question.work.size(); ++work) {
    const FillWork& offered = plan.question.work[work];
    const WorkSum sum = sum_of_work(plan, work);
    table.row({offered.name, two_digits(sum.gained), fmt::format("{:.0f}", sum.requests),
               offered.requests ? percent(sum.requests, *offered.requests) : "no end"});
  }
  return table.text();
}

Json answer_json(const FleetPlan& plan, const FleetKind& kind, std::size_t work) {
  const KindAnswer& answer = kind.answers[work];
  Json out{{"work", plan.question.work[work].name}, {"gpu_hours", kind.hours[work]}};
  if (!answer.reason.empty()) {
    out["reason"] = answer.reason;
    return out;
  }
  out.update({{"policy", answer.policy},
              {"setting", answer.setting},
              {"gains_per_gpu", answer.gains},
              {"training_kept", 1 - answer.costs},
              {"requests_per_gpu_s", answer.requests_per_s},
              {"run_config", Json::parse(answer.run_config, nullptr, false)}});
  return out;
}

Json kinds_json(const FleetPlan& plan) {
  Json list = Json::array();
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) {
    const FleetKind& kind = plan.kinds[i];
    Json answers = Json::array();
    for (std::size_t work = 0; work < kind.answers.size(); ++work) {
      answers.push_back(answer_json(plan, kind, work));
    }
    list.push_back({{"kind", kind_name(plan, i)},
                    {"jobs", kind.jobs},
                    {"device", kind.device},
                    {"gpu_hours", kind.gpu_hours},
                    {"bubble_share", kind.bubble},
                    {"answers", std::move(answers)}});
  }
  return list;
}

Json works_json(const FleetPlan& plan) {
  Json list = Json::array();
  for (std::size_t work = 0; work < plan.question.work.size(); ++work) {
    const FillWork& offered = plan.question.work[work];
    const WorkSum sum = sum_of_work(plan, work);
    list.push_back({{"work", offered.name},
                    {"weight", offered.weight},
                    {"requests_in_queue",
                     offered.requests ? Json(*offered.requests) : Json(nullptr)},
                    {"requests", sum.requests},
                    {"gained_gpu_hours", sum.gained}});
  }
  return list;
}

Json placements_json(const FleetPlan& plan) {
  Json list = Json::array();
  for (const FleetPlacement& placement : plan.placements) {
    const KindAnswer& answer = plan.answer_of(placement);
    const double hours = placement.hours * plan.gpus[placement.job];
    list.push_back({{"job", plan.question.jobs[placement.job].name},
                    {"kind", kind_name(plan, plan.kind_of[placement.job])},
                    {"gpus", plan.gpus[placement.job]},
                    {"work", plan.question.work[placement.work].name},
                    {"hours", placement.hours},
                    {"policy", answer.policy},
                    {"gained_gpu_hours", hours * answer.gains},
                    {"lost_gpu_hours", hours * answer.costs}});
  }
  return list;
}

void add_row(const FleetPlan& plan, std::size_t job, const FleetPlacement* placement,
             std::string& text) {
  append_csv_cell(text, plan.question.jobs[job].name);
  text += ",";
  append_csv_cell(text, kind_name(plan, plan.kind_of[job]));
  text += fmt::format(",{:g},", plan.gpus[job]);
  if (placement == nullptr) {
    text += ",0,,,0,0,0\n";
    return;
  }
  const KindAnswer& answer = plan.answer_of(*placement);
  const double hours = placement->hours * plan.gpus[job];
  append_csv_cell(text, plan.question.work[placement->work].name);
  text += fmt::format(",{:.6g},{},", placement->hours, answer.policy);
  append_csv_cell(text, answer.setting);
  text += fmt::format(",{:.6g},{:.6g},{:.0f}\n", hours * answer.gains, hours * answer.costs,
                      hours * answer.requests_per_s * 3600);
}

}  // namespace

std::string fleet_summary(const FleetPlan& plan) {
  const FleetSum sum = sum_of(plan);
  return fmt::format("{} jobs of {} kinds, {} works: {:.1f} of {:.1f} GPU-hours a day gained ({}), "
                     "training loses {:.1f} ({})",
                     plan.question.jobs.size(), plan.kinds.size(), plan.question.work.size(),
                     sum.gained, sum.jobs, percent(sum.gained, sum.jobs), sum.lost,
                     percent(sum.lost, sum.jobs));
}

std::string fleet_text(const FleetPlan& plan) {
  return fleet_summary(plan) + "\n\n" + kinds_table(plan) + "\n" + works_table(plan) +
         fmt::format("\n{} runs now, {} stored before{}\n", plan.simulated, plan.stored,
                     plan.stopped ? "; stopped before the end" : "");
}

std::string fleet_csv(const FleetPlan& plan) {
  std::string text =
      "job,kind,gpus,work,hours,policy,setting,gained_gpu_hours,lost_gpu_hours,requests\n";
  auto next = plan.placements.begin();
  for (std::size_t job = 0; job < plan.question.jobs.size(); ++job) {
    if (next == plan.placements.end() || next->job != job) add_row(plan, job, nullptr, text);
    for (; next != plan.placements.end() && next->job == job; ++next) {
      add_row(plan, job, &*next, text);
    }
  }
  return text;
}

Json fleet_json(const FleetPlan& plan) {
  const FleetSum sum = sum_of(plan);
  return {{"jobs", plan.question.jobs.size()},
          {"limits", {{"keep", plan.question.limits.keep}}},
          {"gpu_hours", sum.jobs},
          {"filled_gpu_hours", sum.filled},
          {"gained_gpu_hours", sum.gained},
          {"lost_gpu_hours", sum.lost},
          {"stopped", plan.stopped},
          {"kinds", kinds_json(plan)},
          {"work", works_json(plan)},
          {"placements", placements_json(plan)}};
}

}  // namespace bubblesim::advise
