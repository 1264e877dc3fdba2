#include "sim/fit/kernel_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "sim/base/add_once.hpp"
#include "sim/base/nearest.hpp"
#include "sim/fit/table_readers.hpp"

namespace bubblesim::fit {
namespace {

using model::KernelKind;
using model::KernelWork;
using model::Precision;

using enum validate::RowRole;

using Reader = CheckedResult<void> (*)(const TableFile&, KernelMeasurements&);

/// A published file, its path below the data folder.
struct KnownTable {
  std::string_view family;
  std::string_view device;
  std::string_view source;
  std::string_view path;
  validate::RowRole role;
  Reader read;
};

#define BUBBLESIM_VIDUR(model, role)                                                       \
  KnownTable{"a100", "a100-80gb", "vidur " model,                                          \
             "microsoft+vidur/data/profiling/compute/a100/" model "/mlp.csv", role,        \
             read_vidur_table}
#define BUBBLESIM_NEUSIGHT(run, role)                                                      \
  KnownTable{"h100", "h100", "neusight " run,                                              \
             "sitar-lab+NeuSight/scripts/asplos/label/NVIDIA_H100_80GB_HBM3/" run ".csv",  \
             role, read_neusight_table}
#define BUBBLESIM_TRACE(family, device, source, path, role) \
  KnownTable{family, device, source, path, role, read_operator_trace}

constexpr std::array kTables = {
    BUBBLESIM_VIDUR("meta-llama/Llama-2-7b-hf", kFit),
    BUBBLESIM_VIDUR("meta-llama/Llama-2-70b-hf", kFit),
    BUBBLESIM_VIDUR("microsoft/phi-2", kFit),
    BUBBLESIM_VIDUR("codellama/CodeLlama-34b-Instruct-hf", kJudge),
    BUBBLESIM_VIDUR("internlm/internlm-20b", kJudge),
    BUBBLESIM_VIDUR("Qwen/Qwen-72B", kJudge),
    BUBBLESIM_VIDUR("meta-llama/Meta-Llama-3-8B", kJudge),
    BUBBLESIM_VIDUR("meta-llama/Meta-Llama-3-70B", kJudge),
    BUBBLESIM_TRACE("a100", "a100-40gb", "sam2 trace, eager",
                    "facebookresearch+sam2/amg_example/amg_example_trace.c33d09d.json", kFit),
    BUBBLESIM_TRACE("a100", "a100-40gb", "sam2 trace, compiled",
                    "facebookresearch+sam2/amg_example/amg_example_trace.eb67acd.json", kJudge),
    BUBBLESIM_TRACE("a100", "a100-40gb", "segment-anything-fast trace, compiled",
                    "pytorch-labs+segment-anything-fast/amg_example/asdf_True.3b766a9.json",
                    kJudge),
    BUBBLESIM_NEUSIGHT("bert_large-inf-512-16", kFit),
    BUBBLESIM_NEUSIGHT("bert_large-inf-512-8", kFit),
    BUBBLESIM_NEUSIGHT("bert_large-train-512-2", kFit),
    BUBBLESIM_NEUSIGHT("bert_large-train-512-8", kFit),
    BUBBLESIM_NEUSIGHT("gpt2_large-inf-1024-4", kFit),
    BUBBLESIM_NEUSIGHT("gpt2_large-inf-1024-8", kFit),
    BUBBLESIM_NEUSIGHT("gpt2_large-train-1024-1", kFit),
    BUBBLESIM_NEUSIGHT("gpt2_large-train-1024-4", kFit),
    BUBBLESIM_NEUSIGHT("opt_13-inf-2048-2", kFit),
    BUBBLESIM_NEUSIGHT("opt_13-inf-2048-8", kFit),
    BUBBLESIM_NEUSIGHT("opt_13-train-2048-1", kFit),
    BUBBLESIM_NEUSIGHT("opt_13-train-2048-2", kFit),
    BUBBLESIM_NEUSIGHT("gpt3_27-inf-2048-2", kJudge),
    BUBBLESIM_NEUSIGHT("gpt3_27-inf-2048-8", kJudge),
    BUBBLESIM_NEUSIGHT("gpt3_27-train-2048-1", kJudge),
    BUBBLESIM_NEUSIGHT("gpt3_xl-inf-2048-2", kJudge),
    BUBBLESIM_NEUSIGHT("gpt3_xl-inf-2048-8", kJudge),
    BUBBLESIM_NEUSIGHT("gpt3_xl-train-2048-1", kJudge),
    KnownTable{"h100", "h100", "triosim vgg13",
               "sarchlab+triosim/sample_trace/trace2-h100-bs128/vgg13/trace.csv", kFit,
               read_triosim_vgg13},
    BUBBLESIM_TRACE("h100", "h100", "modded-nanogpt trace",
                    "KellerJordan+modded-nanogpt/records/track_1_short/"
                    "2025-12-11_NorMuonOptimsAndFixes/profiler-example-traces/"
                    "Baseline_-_12-11_-_220ff-rank6-chrome-trace.json",
                    kFit),
    BUBBLESIM_TRACE("h100", "h100", "Qwen1.5-0.5B trace",
                    "AMD-AGI+TraceLens/tests/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json",
                    kFit),
    BUBBLESIM_TRACE("h100", "h100", "ViT classifier trace",
                    "AMD-AGI+TraceLens/tests/traces/h100/"
                    "Falconsai_nsfw_image_detection__1016002.json",
                    kFit),
    BUBBLESIM_TRACE("h100", "h100", "OWLv2 trace",
                    "AMD-AGI+TraceLens/tests/traces/h100/"
                    "google_owlv2-large-patch14-ensemble__1016001.json",
                    kJudge),
};

#undef BUBBLESIM_VIDUR
#undef BUBBLESIM_NEUSIGHT
#undef BUBBLESIM_TRACE

std::string found_path(const std::string& folder, std::string_view path) {
  const std::string plain = folder + "/" + std::string(path);
  std::error_code code;
  return std::filesystem::exists(plain + ".gz", code) ? plain + ".gz"
         : std::filesystem::exists(plain, code)       ? plain
                                                      : std::string();
}

}  // namespace

void KernelMeasurements::add(const TableFile& file, const std::optional<KernelWork>& work,
                             std::optional<double> time, double nanoseconds) {
  const Duration measured{time ? std::llround(*time * nanoseconds) : 0};
  if (!work || measured <= Duration{}) return counters.add(kKernelRowsUnread);
  rows.push_back({*work, measured, file.device, file.source, file.role});
}

KernelWork gemm_work(std::string name, Precision precision, double m, double n, double k,
                     double batch) {
  const auto whole = [](double value) {
    return static_cast<std::uint64_t>(std::clamp(value, 1.0, 1e15));
  };
  KernelWork work;
  work.name = std::move(name);
  work.kind = KernelKind::kGemm;
  work.precision = precision;
  work.gemm = {whole(m), whole(n), whole(k), whole(batch)};
  work.flops = 2 * m * n * k * batch;
  work.bytes = (m * k + k * n + m * n) * batch * bytes_of(precision);
  work.elements = m * n * batch;
  return work;
}

KernelWork stream_work(std::string name, KernelKind kind, Precision precision, double elements,
                       double bytes) {
  KernelWork work;
  work.name = std::move(name);
  work.kind = kind;
  work.precision = precision;
  work.elements = elements;
  work.bytes = bytes;
  return work;
}

std::vector<std::string> measured_families() {
  std::vector<std::string> out;
  for (const KnownTable& table : kTables) add_once(out, std::string(table.family));
  return out;
}

CheckedResult<KernelMeasurements> read_measured_kernels(const std::string& folder,
                                                        std::string_view family) {
  const std::vector<std::string> families = measured_families();
  if (std::find(families.begin(), families.end(), family) == families.end()) {
    return fail(unknown_name_message("family of measured devices", family, families));
  }
  KernelMeasurements out;
  for (const KnownTable& table : kTables) {
    if (table.family != family) continue;
    const std::string path = found_path(folder, table.path);
    if (path.empty()) {
      out.counters.add(kKernelTablesMissing);
      continue;
    }
    const std::string source(table.source);
    BUBBLESIM_RETURN_IF_ERROR(
        table.read({path, std::string(table.device), source, table.role}, out));
    out.sources.push_back(source);
  }
  if (out.rows.empty()) {
    return fail(folder, {}, "no table of measured kernels of " + std::string(family) +
                                "; expected the public data sets as sim/fit/README.md "
                                "names them");
  }
  return out;
}

}  // namespace bubblesim::fit
