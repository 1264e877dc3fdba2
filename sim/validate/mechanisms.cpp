#include "sim/validate/mechanisms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <initializer_list>

#include "sim/base/nearest.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::validate {
namespace {

using namespace std::chrono_literals;

constexpr double kLeastTold = 0.001;  ///< of a mean |error|

template <class Change>
void change_gpus(SharingStage& stage, Change change) {
  for (auto& [device, machine] : stage.machines) change(machine.gpu);
}

void share_evenly(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) {
    gpu.client_order = hardware::ClientOrder::kEven;
  });
}

void arrive_at_once(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) { gpu.client_switch = Duration{}; });
}

// NVIDIA's open kernel modules (timeout 128 << 3), and a switch at the bandwidth of DRAM.
void slice_as_programmed(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) {
    gpu.time_slice = 1024us;
    gpu.context_switch = 50us;
  });
}

void leave_out_contention(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) {
    hardware::ContentionSpec& spec = gpu.contention;
    spec.l2_slowdown = 0;
    spec.compute_kernel_issue_share = 0;
    spec.memory_kernel_issue_share = 0;
    spec.unknown_kernel_issue_share = 0;
    spec.compute_kernel_memory_boundness = 0;
    spec.memory_kernel_memory_boundness = 0;
    spec.unknown_kernel_memory_boundness = 0;
  });
}

void leave_out_l2(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) { gpu.contention.l2_slowdown = 0; });
}

void reach_the_peak(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) { gpu.dram_reach = 1; });
}

void share_dram_by_sms(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) { gpu.part.dram_saturating_sms = 0; });
}

void keep_the_clock(SharingStage& stage) {
  change_gpus(stage, [](hardware::GpuSpec& gpu) { gpu.part.dark_clock_gain = 1; });
}

void spread_requests(SharingStage& stage) {
  for (auto& [table, setting] : stage.settings) setting.burst = Duration{};
}

// Whether some policy of the row's system demands one of these features, whatever its parameters.
bool demands_one(const SharingRow& row, const SharingStage& stage,
                 std::initializer_list<policy::SystemFeature> features) {
  const auto& systems = stage.settings.at(row.table).systems;
  return std::any_of(systems.begin(), systems.end(), [&](const SystemSetting& setting) {
    const auto spec = stage.policies->find(setting.policy);
    if (setting.name != row.system || !spec) return false;
    return std::any_of((*spec)->demands.begin(), (*spec)->demands.end(), [&](const auto& demand) {
      return demand.parameter.empty() &&
             std::find(features.begin(), features.end(), demand.feature) != features.end();
    });
  });
}

bool run_together(const SharingRow& row, const SharingStage& stage) {
  return row.clients.size() > 1 &&
         !demands_one(row, stage, {policy::SystemFeature::kTimeSlicing});
}

bool take_turns(const SharingRow& row, const SharingStage& stage) {
  using policy::SystemFeature;
  return row.clients.size() > 1 &&
         !demands_one(row, stage,
                      {SystemFeature::kMps, SystemFeature::kMig, SystemFeature::kOneProcess});
}

bool has_a_part(const SharingRow& row, const SharingStage&) {
  return row.sm_percentage > 0 || row.partition > 0;
}

bool contend(const SharingRow& row, const SharingStage& stage) {
  return has_a_part(row, stage) || run_together(row, stage);
}

bool has_requests(const SharingRow& row, const SharingStage&) {
  return std::any_of(row.clients.begin(), row.clients.end(),
                     [](const SharingClient& client) { return client.pace == Pace::kEven; });
}

constexpr std::array<Mechanism, 9> kMechanisms{{
    {"arrival_order", "equal MPS clients have even parts of the room", &share_evenly,
     &run_together},
    {"client_switch", "a kernel that follows another client's comes at once", &arrive_at_once,
     &run_together},
    {"long_slices", "slices of 1.024 ms, switches of 50 us", &slice_as_programmed, &take_turns},
    {"contention", "kernels that run together do not slow each other", &leave_out_contention,
     &contend},
    {"l2", "no slowdown by the neighbours' traffic below saturation", &leave_out_l2,
     &run_together},
    {"dram_reach", "kernels ask for parts of DRAM's peak bandwidth", &reach_the_peak, &contend},
    {"dram_saturation", "traffic in proportion to a client's SMs", &share_dram_by_sms,
     &has_a_part},
    {"dark_clock", "the clock stays while SMs are dark", &keep_the_clock, &has_a_part},
    {"bursts", "requests come evenly", &spread_requests, &has_requests},
}};

using Progress = std::function<void(const std::string&)>;

// All rows without the mechanism: those that it does not touch are as they were with it.
CheckedResult<std::vector<JudgedRow>> judge_without(const Mechanism& mechanism,
                                                    const std::vector<JudgedRow>& judged,
                                                    const SharingStage& stage,
                                                    std::size_t threads,
                                                    const Progress& progress) {
  std::vector<SharingRow> touched;
  for (const JudgedRow& row : judged) {
    if (mechanism.touches(row.row, stage)) touched.push_back(row.row);
  }
  SharingStage changed = stage;
  mechanism.leave_out(changed);
  const Progress named = [&](const std::string& text) {
    if (progress) progress("without " + std::string(mechanism.name) + ": " + text);
  };
  BUBBLESIM_ASSIGN_OR_RETURN(const auto rejudged, judge_sharing(touched, changed, threads, named));
  std::vector<JudgedRow> out = judged;
  auto next = rejudged.begin();
  for (JudgedRow& row : out) {
    if (mechanism.touches(row.row, stage)) row = *next++;
  }
  return out;
}

// Of a metric that has rows of both roles, those marked judge; else all there are.
bool counts(const SharingSummary& cell, const std::vector<SharingSummary>& all) {
  if (cell.role == "judge") return true;
  return cell.role == "all" && std::none_of(all.begin(), all.end(), [&](const auto& other) {
           return other.role == "judge" && other.table == cell.table &&
                  other.system == cell.system && other.metric == cell.metric;
         });
}

}  // namespace

std::span<const Mechanism> sharing_mechanisms() { return kMechanisms; }

Result<void> leave_out(SharingStage& stage, std::string_view name) {
  std::vector<std::string> names;
  for (const Mechanism& mechanism : kMechanisms) {
    if (mechanism.name == name) {
      mechanism.leave_out(stage);
      return {};
    }
    names.emplace_back(mechanism.name);
  }
  return fail("--without", "", unknown_name_message("mechanism", name, names));
}

CheckedResult<std::vector<Ablation>> ablate_sharing(const std::vector<SharingRow>& rows,
                                                    const SharingStage& stage,
                                                    std::size_t threads,
                                                    const Progress& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto judged, judge_sharing(rows, stage, threads, progress));
  const auto complete = summarise_sharing(judged);
  std::vector<Ablation> out;
  for (const Mechanism& mechanism : kMechanisms) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto changed,
                               judge_without(mechanism, judged, stage, threads, progress));
    const auto ablated = summarise_sharing(changed);
    for (const SharingSummary& cell : complete) {
      if (!counts(cell, complete)) continue;
      const auto same = std::find_if(ablated.begin(), ablated.end(), [&](const auto& other) {
        return other.table == cell.table && other.system == cell.system &&
               other.metric == cell.metric && other.role == cell.role;
      });
      if (same == ablated.end()) continue;
      if (std::abs(same->mean_absolute - cell.mean_absolute) < kLeastTold) continue;
      out.push_back({std::string(mechanism.name), cell.table, cell.system, cell.metric, cell.rows,
                     cell.mean_absolute, same->mean_absolute});
    }
  }
  return out;
}

std::string ablation_text(const std::vector<Ablation>& ablations) {
  std::string out;
  for (const Mechanism& mechanism : kMechanisms) {
    out += fmt::format("{}{}; without it: {}\n", out.empty() ? "" : "\n", mechanism.name,
                       mechanism.replacement);
    TextTable table({"table", "system", "metric", "rows", "|error|", "without"},
                    {Align::kLeft, Align::kLeft, Align::kLeft});
    bool changes = false;
    for (const Ablation& cell : ablations) {
      if (cell.mechanism != mechanism.name) continue;
      table.row({cell.table, cell.system, cell.metric, fmt::to_string(cell.rows),
                 fmt::format("{:.1f}%", 100 * cell.error_with),
                 fmt::format("{:.1f}%", 100 * cell.error_without)});
      changes = true;
    }
    if (changes) out += table.text();
  }
  return out;
}

}  // namespace bubblesim::validate
