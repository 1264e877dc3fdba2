#include "sim/model/efficiency.hpp"

#include <algorithm>
#include <filesystem>

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
  const std::size_t slash = field.path.find('/');
  ObjectReader section =
      slash == std::string_view::npos ? root : root.child(field.path.substr(0, slash));
  ObjectReader reader =
      section.child(slash == std::string_view::npos ? field.path : field.path.substr(slash + 1));
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

using E = Efficiency;

template <Precision P>
double& peak(E& e) {
  return e.peak_flops[index_of(P)];
}
template <KernelKind K>
double& fixed(E& e) {
  return e.streams[index_of(K)].fixed_s;
}
template <KernelKind K>
double& share(E& e) {
  return e.streams[index_of(K)].dram_share;
}
template <GemmEfficiency E::*G, double GemmEfficiency::*F>
double& gemm(E& e) {
  return (e.*G).*F;
}
template <double AttentionEfficiency::*F>
double& attention(E& e) {
  return e.attention.*F;
}
template <double E::*F>
double& own(E& e) {
  return e.*F;
}

using G = GemmEfficiency;
using A = AttentionEfficiency;
using K = KernelKind;
using P = Precision;

constexpr double kMaxPeak = 1e17;
// Tensor cores never sustain their peak; a fit to short kernels alone would let them, and long
// ones come out too fast.
constexpr double kMostMathShare = 0.95;
constexpr double kMostDramShare = 0.95;  // nor does DRAM, which refreshes and turns around

#define BUBBLESIM_GEMM_FIELDS(section, member)                                              \
  EfficiencyField{section "/math_share", "share", 0.01, kMostMathShare,                     \
                  gemm<member, &G::math_share>},                                            \
  EfficiencyField{section "/fp32_math_share", "share", 0.01, 1.2,                           \
                  gemm<member, &G::fp32_math_share>},                                       \
  EfficiencyField{section "/tile_half_size", "elements", 0, 256,                            \
                  gemm<member, &G::tile_half_size>},                                        \
  EfficiencyField{section "/wave_overhead", "s", 0, 1e-3, gemm<member, &G::wave_overhead_s>}, \
  EfficiencyField{section "/fixed", "s", 0, 1e-3, gemm<member, &G::fixed_s>},               \
  EfficiencyField{section "/dram_share", "share", 0.01, kMostDramShare,                     \
                  gemm<member, &G::dram_share>},                                            \
  EfficiencyField{section "/sm_reach", "share", 0.01, 1, gemm<member, &G::sm_reach>},       \
  EfficiencyField{section "/split_dram_share", "share", 0.1, 10,                            \
                  gemm<member, &G::split_dram_share>},                                      \
  EfficiencyField{section "/roof_exponent", "exponent", 1, 20,                              \
                  gemm<member, &G::roof_exponent>},                                         \
  EfficiencyField{section "/idle_speedup", "share", 0, 1, gemm<member, &G::idle_speedup>},  \
  EfficiencyField{section "/hot_slowdown", "share", 0, 1, gemm<member, &G::hot_slowdown>},  \
  EfficiencyField{section "/hot_after", "s", 1e-6, 10, gemm<member, &G::hot_after_s>}

#define BUBBLESIM_STREAM_FIELDS(section, kind)                            \
  EfficiencyField{section "/fixed", "s", 0, 1e-3, fixed<kind>},           \
  EfficiencyField{section "/dram_share", "share", 0.01, 0.95, share<kind>}

constexpr std::array kFields = {
    EfficiencyField{"boost_clock", "Hz", 1e8, 1e10, own<&E::boost_clock_hz>},
    EfficiencyField{"peak_flops/fp32", "FLOP/s", 1e9, kMaxPeak, peak<P::kFp32>},
    EfficiencyField{"peak_flops/tf32", "FLOP/s", 0, kMaxPeak, peak<P::kTf32>},
    EfficiencyField{"peak_flops/fp16", "FLOP/s", 0, kMaxPeak, peak<P::kFp16>},
    EfficiencyField{"peak_flops/bf16", "FLOP/s", 0, kMaxPeak, peak<P::kBf16>},
    EfficiencyField{"peak_flops/fp8", "FLOP/s", 0, kMaxPeak, peak<P::kFp8>},
    EfficiencyField{"l2/resident", "bytes", 0, 1e10, own<&E::l2_resident_bytes>},
    EfficiencyField{"l2/speedup", "ratio", 1, 20, own<&E::l2_speedup>},
    BUBBLESIM_GEMM_FIELDS("gemm", &E::gemm),
    BUBBLESIM_GEMM_FIELDS("convolution", &E::convolution),
    EfficiencyField{"attention/math_share", "share", 0.01, 1.2, attention<&A::math_share>},
    EfficiencyField{"attention/head_half_size", "elements", 0, 256,
                    attention<&A::head_half_size>},
    EfficiencyField{"attention/key_overhead", "keys", 0, 4096, attention<&A::key_overhead>},
    EfficiencyField{"attention/fixed", "s", 0, 1e-3, attention<&A::fixed_s>},
    BUBBLESIM_STREAM_FIELDS("elementwise", K::kElementwise),
    BUBBLESIM_STREAM_FIELDS("normalisation", K::kNormalisation),
    BUBBLESIM_STREAM_FIELDS("softmax", K::kSoftmax),
    BUBBLESIM_STREAM_FIELDS("embedding", K::kEmbedding),
    BUBBLESIM_STREAM_FIELDS("optimizer", K::kOptimizer),
};

#undef BUBBLESIM_GEMM_FIELDS
#undef BUBBLESIM_STREAM_FIELDS

}  // namespace

std::span<const EfficiencyField> efficiency_fields() { return kFields; }

}  // namespace bubblesim::model
