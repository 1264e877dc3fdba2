#include "sim/measure/calibrate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <string_view>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::measure {
namespace {

using hardware::GpuSpec;

/// A constant of a device that is one number outside of contention.
struct Field {
  const char* key;
  ConstantUnit unit;
  const char* probe;
  double (*get)(const GpuSpec&);
  void (*set)(GpuSpec&, double);
};

template <Duration GpuSpec::*Member>
constexpr Field time_field(const char* key, const char* probe) {
  return {key, ConstantUnit::kNanoseconds, probe,
          [](const GpuSpec& spec) { return static_cast<double>(to_ns(spec.*Member)); },
          [](GpuSpec& spec, double value) { spec.*Member = Duration{std::llround(value)}; }};
}

template <BytesPerSecond GpuSpec::*Member>
constexpr Field rate_field(const char* key, const char* probe) {
  return {key, ConstantUnit::kBytesPerSecond, probe,
          [](const GpuSpec& spec) { return (spec.*Member).value; },
          [](GpuSpec& spec, double value) { (spec.*Member).value = value; }};
}

constexpr std::array kFields{
    time_field<&GpuSpec::launch_latency>("launch_latency", "latencies"),
    time_field<&GpuSpec::stream_gap>("stream_gap", "latencies"),
    time_field<&GpuSpec::sync_latency>("sync_latency", "latencies"),
    time_field<&GpuSpec::completion_notice>("completion_notice", "latencies"),
    Field{"dram_reach", ConstantUnit::kPeakShare, "copies",
          [](const GpuSpec& spec) { return spec.dram_reach; },
          [](GpuSpec& spec, double value) { spec.dram_reach = value; }},
    rate_field<&GpuSpec::host_bandwidth>("host_bandwidth", "copies"),
    time_field<&GpuSpec::time_slice>("time_slice", "slices"),
    time_field<&GpuSpec::context_switch>("context_switch", "slices"),
    time_field<&GpuSpec::client_switch>("client_switch", "clients"),
    Field{"tpc_sms", ConstantUnit::kSms, "sms",
          [](const GpuSpec& spec) { return static_cast<double>(spec.tpc_sms); },
          [](GpuSpec& spec, double value) { spec.tpc_sms = static_cast<std::uint32_t>(value); }},
    Field{"client_order", ConstantUnit::kOrder, "orders",
          [](const GpuSpec& spec) {
            return spec.client_order == hardware::ClientOrder::kArrival ? 1.0 : 0.0;
          },
          [](GpuSpec& spec, double value) {
            spec.client_order =
                value > 0.5 ? hardware::ClientOrder::kArrival : hardware::ClientOrder::kEven;
          }},
    Field{"part/dram_saturating_sms", ConstantUnit::kShare, "parts",
          [](const GpuSpec& spec) { return spec.part.dram_saturating_sms; },
          [](GpuSpec& spec, double value) { spec.part.dram_saturating_sms = value; }},
    Field{"part/dark_clock_gain", ConstantUnit::kShare, "parts",
          [](const GpuSpec& spec) { return spec.part.dark_clock_gain; },
          [](GpuSpec& spec, double value) { spec.part.dark_clock_gain = value; }}};

/// All runs of one calibration.
class Calibrator {
 public:
  Calibrator(const GpuSpec& base, const capture::RigPlace& place) : base_(base), place_(place) {
    out_.spec = base;
  }

  Result<void> run(const Probe& probe) {
    const std::string name = probe.name;
    if (place_.progress) place_.progress("probe: " + name);
    const RigSetup run = probe.run(base_);
    const auto records = records_of(run);
    if (place_.stop != nullptr && *place_.stop) return fail("stopped before its end");
    if (!records) {
      keep_all(name, records.error().text());
    } else if (probe.find != nullptr) {
      take_findings(name, probe.find(*records));
    } else if (name == "copies") {
      take_findings(name, copy_findings(*records, base_));
    } else if (name == "sms") {
      out_.sm_shares = sm_shares(run, *records);
      take_findings(name, {tpc_finding(out_.sm_shares, base_)});
    } else if (name == "parts") {
      // With the step of the SMs, if that was looked for before.
      take_findings(name, part_findings(part_times(*records, out_.spec), base_));
    } else {
      fit(*records);
    }
    return {};
  }
  Calibration take() { return std::move(out_); }

 private:
  [[nodiscard]] Result<Records> records_of(const RigSetup& run) {
    if (run.jobs.size() > 1) BUBBLESIM_RETURN_IF_ERROR(run_one(rehearsal(run)));
    BUBBLESIM_ASSIGN_OR_RETURN(auto result, run_one(run));
    Records records;
    for (std::size_t i = 0; i < result.jobs.size(); ++i) {
      capture::JobOutcome& job = result.jobs[i];
      if (!job.record) return fail("\"" + run.jobs[i].name + "\" " + job.end);
      records.push_back(std::move(*job.record));
    }
    return records;
  }
  [[nodiscard]] Result<capture::RigResult> run_one(const RigSetup& run) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto result, capture::run_rig(place_, run));
    out_.counters.merge(result.counters);
    out_.length += result.length;
    return result;
  }
  void take_findings(const std::string& probe, const std::vector<Finding>& found) {
    for (const Field& field : kFields) {
      if (field.probe != probe) continue;
      const auto base = field.get(base_);
      CalibratedConstant constant{field.key, field.unit, base, base, {}, {}};
      for (const Finding& finding : found) {
        if (finding.key != constant.key) continue;
        constant.spread = finding.spread;
        constant.kept = finding.missing;
        if (!finding.missing.empty()) continue;
        constant.value = finding.spread.middle;
        field.set(out_.spec, constant.value);
      }
      out_.constants.push_back(std::move(constant));
    }
  }
  void fit(const Records& records) {
    out_.cells = contention_cells(records, base_);
    const auto fitted = static_cast<std::size_t>(
        std::ranges::count(out_.cells, false, &ContentionCell::held_out));
    if (fitted < contention_parameters().size()) {
      keep_all("contention", fmt::format("{} cells to fit", fitted));
      return;
    }
    if (place_.progress) place_.progress(fmt::format("fitting {} cells", fitted));
    out_.contention = fit_contention(out_.cells, base_);
    out_.spec.contention = out_.contention->spec;
    for (const FittedParameter& parameter : out_.contention->parameters) {
      const Spread spread{fitted, parameter.value - parameter.error, parameter.value,
                          parameter.value + parameter.error};
      out_.constants.push_back({"contention/" + parameter.key, ConstantUnit::kShare, parameter.base,
                                parameter.value, spread, parameter.kept});
    }
  }
  void keep_all(const std::string& probe, const std::string& why) {
    const std::string kept = "the probe did not run: " + why;
    for (const Field& field : kFields) {
      if (field.probe != probe) continue;
      out_.constants.push_back(
          {field.key, field.unit, field.get(base_), field.get(base_), {}, kept});
    }
    if (probe != "contention") return;
    for (const ContentionParameter& parameter : contention_parameters()) {
      const double base = base_.contention.*parameter.value;
      out_.constants.push_back(
          {std::string("contention/") + parameter.key, ConstantUnit::kShare, base, base, {}, kept});
    }
  }

  const GpuSpec& base_;
  const capture::RigPlace& place_;
  Calibration out_;
};

}  // namespace

const std::vector<Probe>& probe_list() {
  static const std::vector<Probe> list{
      {"latencies", "launches, queued kernels, waits and notices, alone", latency_run,
       latency_findings},
      {"copies", "what copies reach of DRAM's bandwidth, and the link to the host", copy_run,
       nullptr},
      {"slices", "time slices and context switches of two processes without MPS", slice_run,
       slice_findings},
      {"clients", "how late a kernel of one MPS client comes after another's", client_run,
       client_findings},
      {"orders", "whose blocks come first, of two MPS clients", order_run, order_findings},
      {"sms", "SMs that MPS percentages really give", sm_run, nullptr},
      {"parts", "what a part of the SMs reaches, by DRAM and by the clock", part_run, nullptr},
      {"contention", "how kernels of each class and size slow each other", contention_run,
       nullptr}};
  return list;
}

Result<Calibration> calibrate(const hardware::GpuSpec& base, const capture::RigPlace& place,
                              const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const Probe& probe : probe_list()) names.emplace_back(probe.name);
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) == names.end()) {
      return fail(unknown_name_message("probe", name, names));
    }
  }
  Calibrator calibrator(base, place);
  for (const Probe& probe : probe_list()) {
    const bool wanted = only.empty() || std::ranges::find(only, probe.name) != only.end();
    if (wanted) BUBBLESIM_RETURN_IF_ERROR(calibrator.run(probe));
  }
  return calibrator.take();
}

namespace {

Result<Json> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path, "", "cannot be read");
  Json out = Json::parse(file, nullptr, false);
  if (out.is_discarded() || !out.is_object()) return fail(path, "", "expected a JSON object");
  return out;
}

/// `path`: "part/dark_clock_gain".
void put_constant(Json& root, std::string_view path, const Json& value,
                  const std::string& source) {
  const std::size_t slash = path.find('/');
  if (slash != std::string_view::npos) {
    return put_constant(root[std::string(path.substr(0, slash))], path.substr(slash + 1), value,
                        source);
  }
  Json& constant = root[std::string(path)];
  constant["value"] = value;
  constant["source"] = source;
}

/// To five digits: no constant is known better.
double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

Json json_value(const CalibratedConstant& constant) {
  switch (constant.unit) {
    case ConstantUnit::kSms: return static_cast<std::uint64_t>(constant.value);
    case ConstantUnit::kPeakShare:
    case ConstantUnit::kShare: return Json::parse(value_text(constant.unit, constant.value));
    case ConstantUnit::kNanoseconds:
    case ConstantUnit::kBytesPerSecond:
    case ConstantUnit::kOrder: break;
  }
  return value_text(constant.unit, constant.value);
}

const char* class_name(program::KernelClass kernel_class) {
  switch (kernel_class) {
    case program::KernelClass::kCompute: return "compute";
    case program::KernelClass::kMemory: return "memory";
    case program::KernelClass::kUnknown: break;
  }
  return "unknown";
}

/// A base file that has no `part` has no units for it either.
void put_part_units(Json& root) {
  if (!root.contains("part")) return;
  root["part"]["dram_saturating_sms"]["unit"] = "share";
  root["part"]["dark_clock_gain"]["unit"] = "ratio";
}

/// The base's cost of a switch without blocks is no more where all of one was measured to be less.
void drop_dear_empty_switch(Json& root, const hardware::GpuSpec& spec) {
  if (spec.context_switch_empty > spec.context_switch) root.erase("context_switch_empty");
}

std::string occupant_text(const Occupant& occupant) {
  return fmt::format("{},{}", class_name(occupant.kernel_class), occupant.blocks);
}

}  // namespace

std::string value_text(ConstantUnit unit, double value) {
  switch (unit) {
    case ConstantUnit::kNanoseconds: {
      const Duration span{std::llround(std::abs(value))};
      return (value < -0.5 ? "-" : "") + format_duration(span);
    }
    case ConstantUnit::kBytesPerSecond: return format_rate(BytesPerSecond{rounded(value)});
    case ConstantUnit::kSms: return fmt::format("{:.0f}", value);
    case ConstantUnit::kOrder: return value > 0.5 ? "arrival" : "even";
    case ConstantUnit::kPeakShare:
    case ConstantUnit::kShare: break;
  }
  return fmt::format("{:.4g}", std::max(0.0, value));
}

namespace {

/// "measured: bubblesim calibrate, 2026-11-22, NVIDIA H100 80GB HBM3, driver 580.1, n=120,
/// quartiles 1.25us to 1.27us".
std::string source_of(const CalibratedConstant& constant, const CalibrationOrigin& origin) {
  std::string text = fmt::format("measured: bubblesim calibrate{}, {}, {}",
                                 origin.fake ? " --fake" : "", origin.date, origin.device);
  if (!origin.driver.empty()) text += ", driver " + origin.driver;
  const Spread& spread = constant.spread;
  if (constant.unit == ConstantUnit::kShare) {
    return text + fmt::format(", fitted to n={} cells of a grid of kernels, standard error {:.2g}",
                              spread.count, spread.high - spread.middle);
  }
  text += fmt::format(", n={}", spread.count);
  if (constant.unit == ConstantUnit::kSms) return text + " MPS percentages";
  if (constant.unit == ConstantUnit::kOrder) return text + " kernels beside another client's";
  return text + fmt::format(", quartiles {} to {}", value_text(constant.unit, spread.low),
                            value_text(constant.unit, spread.high));
}

}  // namespace

Result<std::string> calibrated_device_text(
    const std::string& base_path, const Calibration& calibration, const CalibrationOrigin& origin,
    const std::optional<std::vector<std::string>>& recorded_names) {
  BUBBLESIM_ASSIGN_OR_RETURN(Json root, load_config(base_path));
  if (recorded_names) {
    put_constant(
        root, "recorded_names", *recorded_names,
        "bubblesim calibrate: names of the device that no other file of the folder has");
  }
  if (!origin.device.empty()) root["name"]["value"] = origin.device;
  for (const CalibratedConstant& constant : calibration.constants) {
    if (!constant.kept.empty()) continue;
    put_constant(root, constant.key, json_value(constant), source_of(constant, origin));
  }
  put_part_units(root);
  drop_dear_empty_switch(root, calibration.spec);
  return indented_text(root, 2) + "\n";
}

std::string residuals_csv(const Calibration& calibration) {
  std::string text =
      "victim_class,victim_blocks,first_class,first_blocks,second_class,second_blocks,"
      "executions,measured_slowdown,low_quartile,high_quartile,fitted_slowdown,error,held_out\n";
  for (std::size_t i = 0; i < calibration.cells.size(); ++i) {
    const ContentionCell& cell = calibration.cells[i];
    const double fitted =
        calibration.contention ? calibration.contention->predicted[i] : 0;
    text += occupant_text(cell.victim);
    for (std::size_t other = 0; other < 2; ++other) {
      text += other < cell.others.size() ? "," + occupant_text(cell.others[other]) : ",,";
    }
    text += fmt::format(",{},{:.5f},{:.5f},{:.5f},{:.5f},{:.5f},{}\n", cell.slowdown.count,
                        cell.slowdown.middle, cell.slowdown.low, cell.slowdown.high, fitted,
                        fitted / cell.slowdown.middle - 1, cell.held_out ? 1 : 0);
  }
  return text;
}

}  // namespace bubblesim::measure
