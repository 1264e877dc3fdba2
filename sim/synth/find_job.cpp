#include "sim/synth/find_job.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/synth/plan_file.hpp"
#include "sim/synth/software_spec.hpp"

namespace bubblesim::synth {
namespace {

// Whether each object on the way to the pointer is there; only its last key may be new.
Result<void> apply(const PlanChange& change, Json& plan) {
  Json* at = &plan;
  std::istringstream keys(change.pointer.substr(1));
  std::string key;
  std::getline(keys, key, '/');
  for (std::string next; std::getline(keys, next, '/'); key = next) {
    if (!at->contains(key)) (*at)[key] = Json::object();
    at = &(*at)[key];
    if (!at->is_object()) {
      return fail("--set", change.pointer, "found a value that has no keys at " + quote_found(key));
    }
  }
  Json value = Json::parse(change.value, nullptr, false);
  (*at)[key] = value.is_discarded() ? Json(change.value) : std::move(value);
  return {};
}

// No change overwrites an earlier one, which would be lost.
Result<void> check_overwritten(const std::vector<PlanChange>& changes) {
  for (auto later = changes.begin(); later != changes.end(); ++later) {
    const auto earlier = std::find_if(changes.begin(), later, [&](const PlanChange& change) {
      return (change.pointer + '/').starts_with(later->pointer + '/');
    });
    if (earlier == later) continue;
    return fail("--set", later->pointer, "found after " + quote_found(earlier->pointer) +
                                             ", which it overwrites; expected one of them");
  }
  return {};
}

// A seed of its own, where flows take their up-links by hash.
Result<void> set_hash_seed(std::uint64_t seed, const std::string& cluster,
                           hardware::FatTreeSpec& tree) {
  if (tree.placement != hardware::FlowPlacement::kHash) {
    return fail(cluster, "/hash_seed",
                "found " + std::to_string(seed) + "; flows of this cluster take no up-links by "
                "hash (fat_tree/placement)");
  }
  tree.hash_seed = seed;
  return {};
}

CheckedResult<PlanSpec> plan_of(const JobNames& names, const std::string& configs) {
  if (const auto* plan = std::get_if<PlanSpec>(&names.plan)) return *plan;
  return find_plan(std::get<std::string>(names.plan), configs + "/plans", names.changes);
}

CheckedResult<hardware::GpuSpec> gpu_of(const JobNames& names, const std::string& of_cluster,
                                        const std::string& configs) {
  const auto device = names.device.value_or(of_cluster);
  if (const auto* gpu = std::get_if<hardware::GpuSpec>(&device)) return *gpu;
  return hardware::find_gpu_spec(std::get<std::string>(device), configs + "/devices");
}

}  // namespace

Result<PlanChange> parse_plan_change(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string key = text.substr(0, equals);
  if (!key.empty() && key.front() != '/') key.insert(0, 1, '/');
  if (equals == std::string::npos || key.size() < 2 || key.back() == '/' ||
      key.find("//") != std::string::npos) {
    return fail("--set", {}, "found " + quote_found(text) +
                                 "; expected KEY=VALUE with a key of a plan file, such as data=8 "
                                 "or /gradients/bucket=50MiB");
  }
  return PlanChange{std::move(key), text.substr(equals + 1)};
}

CheckedResult<PlanSpec> find_plan(const std::string& name, const std::string& folder,
                                  const std::vector<PlanChange>& changes) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "plan"));
  if (changes.empty()) return read_plan_file(path);
  Json plan = Json::parse(read_text_file(path).value_or(std::string()), nullptr, false);
  // Not readable or not an object: the reader of whole files says what is wrong with it.
  if (!plan.is_object()) return read_plan_file(path);
  BUBBLESIM_RETURN_IF_ERROR(check_overwritten(changes));
  for (const PlanChange& change : changes) {
    BUBBLESIM_RETURN_IF_ERROR(apply(change, plan));
  }
  const std::filesystem::path plan_folder = std::filesystem::path(path).parent_path();
  for (const char* key : {"/schedule_csv", "/routing/shares"}) {
    const Json::json_pointer place(key);
    if (!plan.contains(place) || !plan[place].is_string()) continue;
    plan[place] = (plan_folder / plan[place].get<std::string>()).string();
  }
  return parse_plan(compact_text(plan), path);
}

CheckedResult<JobRequest> find_job(const JobNames& names, const std::string& configs) {
  Errors errors;
  JobRequest out;
  out.model = take(model::find_model(names.model, configs + "/models"), errors);
  auto plan = plan_of(names, configs);
  const bool planned = plan.has_value();
  out.plan = take(std::move(plan), errors);
  auto cluster = hardware::find_cluster_spec(names.cluster, configs + "/clusters");
  const bool seeded = cluster.has_value() && names.hash_seed.has_value();
  const bool known = cluster.has_value() || names.device.has_value();
  out.cluster = take(std::move(cluster), errors);
  if (seeded) {
    const auto set = set_hash_seed(*names.hash_seed, names.cluster, out.cluster.tree);
    if (!set) errors.push_back(set.error());
  }
  if (names.nodes) out.cluster = hardware::with_nodes(std::move(out.cluster), *names.nodes);
  if (names.software) out.plan.software = *names.software;
  if (names.folding) out.plan.folding = *names.folding;
  if (planned || names.software) {
    out.software = take(find_software(out.plan.software, configs + "/software"), errors);
  }
  if (known) {
    auto found = gpu_of(names, out.cluster.device, configs);
    const bool described = found.has_value();
    out.gpu = take(std::move(found), errors);
    if (described) out.efficiency = take(model::device_efficiency(out.gpu, configs), errors);
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

namespace {

using model::Precision;

constexpr CounterSpec kBf16AsFp16{
    "precision_bf16_as_fp16", Severity::kNotice,
    "programs in bf16, which the device has no units for: computed in fp16 with loss scaling, as "
    "frameworks do"};
constexpr CounterSpec kBf16AsFp32{
    "precision_bf16_as_fp32", Severity::kNotice,
    "programs in bf16, which the device has no units for, nor for fp16: computed in fp32"};
constexpr CounterSpec kFp16AsFp32{
    "precision_fp16_as_fp32", Severity::kNotice,
    "programs in fp16, which the device has no units for: computed in fp32"};
constexpr CounterSpec kTf32AsFp32{
    "precision_tf32_as_fp32", Severity::kNotice,
    "programs in tf32, which the device has no units for: computed in fp32, as frameworks do"};

}  // namespace

std::optional<std::string> precision_fault(const model::Efficiency& efficiency,
                                           Precision precision, const std::string& device) {
  if (precision != Precision::kFp8 || model::computed_in(efficiency, precision) == precision) {
    return std::nullopt;
  }
  std::string has;
  for (const auto& [name, value] : model::kPrecisionNames) {
    if (efficiency.peak_flops[index_of(value)] <= 0) continue;
    has += (has.empty() ? "" : ", ") + std::string(name);
  }
  return "found fp8, which " + device + " has no units for; it has " + has;
}

void count_replaced_precision(const model::Efficiency& efficiency, Precision precision,
                              CounterSet& counters) {
  const Precision used = model::computed_in(efficiency, precision);
  if (used == precision) return;
  const bool single = used == Precision::kFp32;
  if (precision == Precision::kBf16) counters.add(single ? kBf16AsFp32 : kBf16AsFp16);
  if (precision == Precision::kFp16) counters.add(kFp16AsFp32);
  if (precision == Precision::kTf32) counters.add(kTf32AsFp32);
}

}  // namespace bubblesim::synth
