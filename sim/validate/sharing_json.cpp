#include "sim/validate/sharing_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "sim/base/add_once.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/policy/demands.hpp"
#include "sim/validate/job_name.hpp"
#include "sim/validate/judge_sharing.hpp"

namespace bubblesim::validate {
namespace {

using hardware::GpuSpec;

Duration span_of(double ns) { return Duration{std::llround(ns)}; }

struct Constant {
  std::string_view key;
  void (*put)(GpuSpec& gpu, double value);
};

constexpr std::array<Constant, 10> kConstants{{
    {"time_slice", [](GpuSpec& gpu, double ns) { gpu.time_slice = span_of(ns); }},
    {"context_switch", [](GpuSpec& gpu, double ns) { gpu.context_switch = span_of(ns); }},
    {"client_switch", [](GpuSpec& gpu, double ns) { gpu.client_switch = span_of(ns); }},
    {"even_clients",
     [](GpuSpec& gpu, double even) {
       gpu.client_order = even > 0 ? hardware::ClientOrder::kEven : hardware::ClientOrder::kArrival;
     }},
    {"dram_reach", [](GpuSpec& gpu, double share) { gpu.dram_reach = share; }},
    {"part/dram_saturating_sms",
     [](GpuSpec& gpu, double share) { gpu.part.dram_saturating_sms = share; }},
    {"part/dark_clock_gain", [](GpuSpec& gpu, double gain) { gpu.part.dark_clock_gain = gain; }},
    {"contention/l2_slowdown",
     [](GpuSpec& gpu, double slowdown) { gpu.contention.l2_slowdown = slowdown; }},
    {"contention/issue_shares",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_issue_share = gpu.contention.memory_kernel_issue_share =
           gpu.contention.unknown_kernel_issue_share = share;
     }},
    {"contention/memory_boundness",
     [](GpuSpec& gpu, double share) {
       gpu.contention.compute_kernel_memory_boundness =
           gpu.contention.memory_kernel_memory_boundness =
               gpu.contention.unknown_kernel_memory_boundness = share;
     }},
}};
constexpr std::string_view kBurst = "burst";

Result<void> change(SharingStage& stage, const std::string& key, double value) {
  const auto constant = std::ranges::find(kConstants, key, &Constant::key);
  if (key == kBurst) {
    for (auto& [table, setting] : stage.settings) setting.burst = span_of(value);
  } else if (constant == kConstants.end()) {
    return fail("changes", {}, unknown_name_message("constant", key, sharing_changes()));
  } else {
    for (auto& [device, machine] : stage.machines) constant->put(machine.gpu, value);
  }
  return {};
}

bool is_asked_for(const SharingRow& row, const SharingRequest& request,
                  const SharingStage& stage) {
  const auto& systems = request.systems;
  if (!request.role.empty() && request.role != role_name(row.role)) return false;
  if (!request.device.empty() && request.device != stage.device_of(row)) return false;
  return systems.empty() || std::ranges::any_of(systems, [&](const std::string& system) {
           return letters_of(system) == letters_of(row.system);
         });
}

CheckedResult<std::vector<SharingRow>> rows_of(const SharingRequest& request,
                                               SharingStage& stage) {
  std::vector<SharingRow> all;
  for (const std::string& path : request.tables) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const auto rows, add_sharing_table(stage, path, request.setting, request.configs));
    std::ranges::copy_if(rows, std::back_inserter(all), [&](const SharingRow& row) {
      return is_asked_for(row, request, stage);
    });
  }
  if (request.rows.empty()) return all;
  std::vector<SharingRow> out;
  for (const std::size_t row : request.rows) {
    if (row < all.size()) out.push_back(all[row]);
  }
  return out;
}

// What policies of the row's system demand whatever their parameters.
std::vector<std::string> demands_of(const SharingRow& row, const SharingStage& stage) {
  std::vector<std::string> out;
  for (const SystemSetting& system : stage.settings.at(row.table).systems) {
    const auto spec = stage.policies->find(system.policy);
    if (system.name != row.system || !spec) continue;
    for (const auto& demand : (*spec)->demands) {
      if (!demand.parameter.empty()) continue;
      add_once(out, std::string(policy::feature_word(demand.feature)));
    }
  }
  return out;
}

constexpr std::array<std::string_view, 5> kQuantities{"share", "sum", "time", "mean",
                                                      "percentile"};

Json row_json(const JudgedRow& judged, const SharingStage& stage) {
  const SharingRow& row = judged.row;
  Json figures = Json::array();
  for (const SharingFigure& figure : row.figures) {
    figures.push_back({{"metric", figure.metric},
                       {"quantity", kQuantities[static_cast<std::size_t>(figure.quantity)]},
                       {"client", figure.client},
                       {"measured", figure.measured},
                       {"simulated", figure.simulated}});
  }
  const bool has_requests = std::ranges::any_of(
      row.clients, [](const SharingClient& client) { return client.pace == Pace::kEven; });
  return {{"table", row.table},
          {"role", role_name(row.role)},
          {"subject", row.subject},
          {"system", row.system},
          {"outcome", outcome_name(judged.outcome)},
          {"note", judged.note},
          {"device", stage.device_of(row)},
          {"clients", row.clients.size()},
          {"has_requests", has_requests},
          {"has_a_part", row.sm_percentage > 0 || row.partition > 0},
          {"demands", demands_of(row, stage)},
          {"figures", std::move(figures)},
          {"left_out", row.left_out},
          {"over_time", judged.over_time}};
}

Json tables_json(const SharingStage& stage) {
  Json out = Json::array();
  for (const auto& [table, setting] : stage.settings) {
    out.push_back({{"table", table},
                   {"setting", setting.path},
                   {"device", setting.device},
                   {"unread", stage.unread.at(table)}});
  }
  return out;
}

}  // namespace

std::vector<std::string> sharing_changes() {
  std::vector<std::string> out{std::string(kBurst)};
  for (const Constant& constant : kConstants) out.emplace_back(constant.key);
  return out;
}

CheckedResult<Json> judge_sharing_tables(const SharingRequest& request,
                                         const policy::Registry& policies) {
  BUBBLESIM_ASSIGN_OR_RETURN(SharingStage stage, make_sharing_stage(request.configs, policies));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto rows, rows_of(request, stage));
  for (const auto& [key, value] : request.changes) {
    BUBBLESIM_RETURN_IF_ERROR(change(stage, key, value));
  }
  stage.window = request.window;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto judged,
                             judge_sharing(rows, stage, request.threads, request.progress));
  Json list = Json::array();
  for (const JudgedRow& row : judged) list.push_back(row_json(row, stage));
  return Json{{"tables", tables_json(stage)}, {"rows", std::move(list)}};
}

std::vector<std::string> sharing_tables_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& name : sharing_tables()) {
    const std::string path = folder + "/" + name + ".csv";
    if (std::filesystem::exists(path)) out.push_back(path);
  }
  return out;
}

}  // namespace bubblesim::validate
