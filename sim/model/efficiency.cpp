#include "sim/model/efficiency.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "sim/base/input_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"

namespace bubblesim::model {

Precision computed_in(const Efficiency& efficiency, Precision precision) {
  if (precision == Precision::kFp32 || efficiency.peak_flops[index_of(precision)] > 0) {
    return precision;
  }
  switch (precision) {
    case Precision::kFp8: return computed_in(efficiency, Precision::kBf16);
    case Precision::kBf16: return computed_in(efficiency, Precision::kFp16);
    default: return Precision::kFp32;
  }
}

double peak_flops(const Efficiency& efficiency, Precision precision) {
  return efficiency.peak_flops[index_of(computed_in(efficiency, precision))];
}

namespace {

void check_source(ObjectReader& constant) {
  if (!constant.present()) return;
  const bool found = constant.require(
      "source", "this constant has no \"source\"; expected where its value comes from");
  if (found && constant.text("source").empty()) {
    constant.fault("source", "found no text; expected where the value comes from");
  }
}

void read_field(ObjectReader& root, const EfficiencyField& field, Efficiency& out) {
  const std::string_view path = field.path;
  const std::size_t slash = path.find('/');
  ObjectReader section = slash == std::string_view::npos ? root : root.child(path.substr(0, slash));
  ObjectReader reader =
      section.child(slash == std::string_view::npos ? path : path.substr(slash + 1));
  if (!reader.present()) return;
  reader.expect("unit", field.unit);
  field.value(out) = reader.number("value", {field.low, field.high});
  check_source(reader);
}

}  // namespace

Efficiency read_efficiency(ObjectReader& root) {
  Efficiency out;
  ObjectReader software = root.child("software");
  out.software = software.text("value");
  check_source(software);
  for (const EfficiencyField& field : efficiency_fields()) read_field(root, field, out);
  root.finish();
  return out;
}

CheckedResult<Efficiency> find_efficiency(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, folder, "efficiency"));
  BUBBLESIM_ASSIGN_OR_RETURN(Efficiency efficiency, read_whole_file(path, read_efficiency));
  efficiency.id = data_file_id(path);
  return efficiency;
}

CheckedResult<Efficiency> device_efficiency(const hardware::GpuSpec& gpu,
                                            const std::string& configs) {
  const std::string folder = configs + "/efficiency";
  std::error_code code;
  if (std::filesystem::exists(folder + '/' + gpu.id + ".json", code)) {
    return find_efficiency(gpu.id, folder);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices,
                             hardware::read_device_folder(configs + "/devices"));
  const auto match = std::ranges::find_if(
      devices, [&](const auto& device) { return device.spec.name == gpu.name; });
  if (match != devices.end()) return find_efficiency(match->spec.id, folder);
  return tl::make_unexpected(Errors{
      {folder, {}, "found no file for " + gpu.name + "; expected " + gpu.id +
                       ".json, or \"efficiency\" of a model that serves"}});
}

namespace {

constexpr double kMaxPeak = 1e17;
// Tensor cores never sustain their peak; a fit to short kernels alone would let them, and long
// ones come out too fast.
constexpr double kMostMathShare = 0.95;
constexpr double kMostDramShare = 0.95;  // nor does DRAM, which refreshes and turns around

/// A number of a section, by its path below it.
template <class Section>
struct SectionField {
  const char* path;
  std::string_view unit;
  double low;
  double high;
  double Section::*value;
};

using Gemm = GemmEfficiency;
constexpr std::array<SectionField<Gemm>, 12> kGemmFields{{
    {"/math_share", "share", 0.01, kMostMathShare, &Gemm::math_share},
    {"/fp32_math_share", "share", 0.01, 1.2, &Gemm::fp32_math_share},
    {"/tile_half_size", "elements", 0, 256, &Gemm::tile_half_size},
    {"/wave_overhead", "s", 0, 1e-3, &Gemm::wave_overhead_s},
    {"/fixed", "s", 0, 1e-3, &Gemm::fixed_s},
    {"/dram_share", "share", 0.01, kMostDramShare, &Gemm::dram_share},
    {"/sm_reach", "share", 0.01, 1, &Gemm::sm_reach},
    {"/split_dram_share", "share", 0.1, 10, &Gemm::split_dram_share},
    {"/roof_exponent", "exponent", 1, 20, &Gemm::roof_exponent},
    {"/idle_speedup", "share", 0, 1, &Gemm::idle_speedup},
    {"/hot_slowdown", "share", 0, 1, &Gemm::hot_slowdown},
    {"/hot_after", "s", 1e-6, 10, &Gemm::hot_after_s}}};

using Attention = AttentionEfficiency;
constexpr std::array<SectionField<Attention>, 4> kAttentionFields{{
    {"/math_share", "share", 0.01, 1.2, &Attention::math_share},
    {"/head_half_size", "elements", 0, 256, &Attention::head_half_size},
    {"/key_overhead", "keys", 0, 4096, &Attention::key_overhead},
    {"/fixed", "s", 0, 1e-3, &Attention::fixed_s}}};

constexpr std::array<SectionField<StreamEfficiency>, 2> kStreamFields{{
    {"/fixed", "s", 0, 1e-3, &StreamEfficiency::fixed_s},
    {"/dram_share", "share", 0.01, 0.95, &StreamEfficiency::dram_share}}};

std::vector<EfficiencyField> all_fields() {
  std::vector<EfficiencyField> out;
  const auto add = [&](const std::string& section, const auto& fields, const auto& section_of) {
    for (const auto& [path, unit, low, high, value] : fields) {
      out.push_back({section + path, unit, low, high,
                     [section_of, value](Efficiency& e) -> double& {
                       return std::invoke(section_of, e).*value;
                     }});
    }
  };
  out.push_back({"boost_clock", "Hz", 1e8, 1e10, &Efficiency::boost_clock_hz});
  for (const auto& [name, precision] : kPrecisionNames) {
    out.push_back({"peak_flops/" + std::string(name), "FLOP/s",
                   precision == Precision::kFp32 ? 1e9 : 0, kMaxPeak,
                   [precision](Efficiency& e) -> double& {
                     return e.peak_flops[index_of(precision)];
                   }});
  }
  out.push_back({"l2/resident", "bytes", 0, 1e10, &Efficiency::l2_resident_bytes});
  out.push_back({"l2/speedup", "ratio", 1, 20, &Efficiency::l2_speedup});
  add("gemm", kGemmFields, &Efficiency::gemm);
  add("convolution", kGemmFields, &Efficiency::convolution);
  add("attention", kAttentionFields, &Efficiency::attention);
  for (const auto& [name, kind] : {std::pair{"elementwise", KernelKind::kElementwise},
                                   {"normalisation", KernelKind::kNormalisation},
                                   {"softmax", KernelKind::kSoftmax},
                                   {"embedding", KernelKind::kEmbedding},
                                   {"optimizer", KernelKind::kOptimizer}}) {
    add(name, kStreamFields, [kind = kind](Efficiency& e) -> StreamEfficiency& {
      return e.streams[index_of(kind)];
    });
  }
  return out;
}

}  // namespace

std::span<const EfficiencyField> efficiency_fields() {
  static const std::vector<EfficiencyField> fields = all_fields();
  return fields;
}

}  // namespace bubblesim::model
