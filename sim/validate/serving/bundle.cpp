#include "sim/validate/serving/bundle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/validate/serving/text_lines.hpp"

namespace bubblesim::validate {
namespace {

/// Thirty years. SimTime has room for nine times as much.
constexpr double kLongestSpanSeconds = 1e9;

/// Of a setting, as the engine resolved it, and as given.
using EitherPointer = std::array<std::string_view, 2>;
constexpr EitherPointer kMaxModelLen = {"/resolved_config/model_config/max_model_len",
                                        "/engine_kwargs/max_model_len"};
constexpr EitherPointer kLongPrefill = {
    "/resolved_config/scheduler_config/long_prefill_token_threshold",
    "/engine_kwargs/long_prefill_token_threshold"};
constexpr EitherPointer kChunkedPrefill = {
    "/resolved_config/scheduler_config/enable_chunked_prefill",
    "/engine_kwargs/enable_chunked_prefill"};

/// A setting that the simulated server does not have, and the values that change nothing.
struct IgnoredSetting {
  CounterSpec counter;
  EitherPointer pointers;
  std::array<std::string_view, 3> harmless;
};
constexpr std::array<IgnoredSetting, 4> kIgnored = {{
    {{"scheduling_policy_ignored", Severity::kNotice,
      "runs whose engine scheduled by another policy than first come, first served; which request "
      "was urgent is not recorded, and all are taken as equal"},
     {"/resolved_config/scheduler_config/policy", "/engine_kwargs/scheduling_policy"},
     {"fcfs"}},
    {{"quantization_ignored", Severity::kLoss,
      "runs with quantized weights (quantization); kernel model and computed cache sizes are those "
      "of bf16"},
     {"/resolved_config/model_config/quantization", "/engine_kwargs/quantization"},
     {}},
    {{"kv_cache_dtype_ignored", Severity::kLoss,
      "runs whose KV cache has elements of another size (kv_cache_dtype); kernel model and "
      "computed cache sizes are those of bf16"},
     {"/resolved_config/cache_config/cache_dtype", "/engine_kwargs/kv_cache_dtype"},
     {"auto", "bfloat16", "float16"}},
    {{"speculative_config_ignored", Severity::kLoss,
      "runs whose engine drafted tokens (speculative_config); the simulated one drafts none"},
     {"/resolved_config/speculative_config", "/engine_kwargs/speculative_config"},
     {}},
}};

std::optional<double> as_number(const Json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<std::uint32_t> as_count(const Json* value) {
  const auto number = as_number(value);
  if (!number || *number < 1 || *number > 4e9 || std::floor(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*number);
}

std::optional<bool> as_flag(const Json* value) {
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

/// A foreign document: what is of no use to us may be of any form.
class ForeignJson {
 public:
  static Result<ForeignJson> parse(const std::string& text, std::string file, std::string place) {
    Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded() || !root.is_object()) {
      return fail(std::move(file), std::move(place), "is no JSON object");
    }
    return ForeignJson(std::move(root), std::move(file), std::move(place));
  }

  [[nodiscard]] const Json* find(std::string_view pointer) const {
    const Json::json_pointer at{std::string(pointer)};
    if (!root_.contains(at) || root_.at(at).is_null()) return nullptr;
    return &root_.at(at);
  }
  [[nodiscard]] std::string text(std::string_view pointer) const {
    const Json* value = find(pointer);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  [[nodiscard]] std::optional<double> number(std::string_view pointer) const {
    return as_number(find(pointer));
  }
  [[nodiscard]] std::optional<std::uint32_t> count(std::string_view pointer) const {
    return as_count(find(pointer));
  }
  [[nodiscard]] std::optional<bool> flag(std::string_view pointer) const {
    return as_flag(find(pointer));
  }

  /// The value at the first of two pointers that has one.
  [[nodiscard]] const Json* find_either(const EitherPointer& pointers) const {
    const Json* value = find(pointers[0]);
    return value != nullptr ? value : find(pointers[1]);
  }

  [[nodiscard]] Result<std::uint32_t> needed_count(std::string_view pointer) const {
    if (const auto value = count(pointer)) return *value;
    return missing(pointer, "a whole number from 1 on");
  }
  [[nodiscard]] Result<double> needed_number(std::string_view pointer) const {
    if (const auto value = number(pointer)) return *value;
    return missing(pointer, "a number");
  }
  [[nodiscard]] tl::unexpected<Error> missing(std::string_view pointer,
                                              std::string_view expected) const {
    const Json* value = find(pointer);
    const std::string found = value == nullptr ? "is missing" : "found " + value->dump();
    return fail(file_, place_ + std::string(pointer),
                found + "; expected " + std::string(expected));
  }

 private:
  ForeignJson(Json root, std::string file, std::string place)
      : root_(std::move(root)), file_(std::move(file)), place_(std::move(place)) {}

  Json root_;
  std::string file_;
  std::string place_;
};

Result<ForeignJson> read_foreign(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return ForeignJson::parse(text, path, {});
}

void count_ignored(const ForeignJson& meta, CounterSet& counters) {
  for (const IgnoredSetting& setting : kIgnored) {
    const Json* value = meta.find_either(setting.pointers);
    if (value == nullptr) continue;
    const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    const bool is_harmless = std::ranges::find(setting.harmless, text) != setting.harmless.end();
    if (!is_harmless) counters.add(setting.counter);
  }
}

/// Nothing: not recorded.
Result<std::optional<step_cost::CaptureSizes>> read_capture_sizes(const ForeignJson& meta) {
  constexpr std::string_view kSizes =
      "/resolved_config/compilation_config/cudagraph_capture_sizes";
  constexpr EitherPointer kEager = {"/resolved_config/model_config/enforce_eager",
                                    "/engine_kwargs/enforce_eager"};
  step_cost::CaptureSizes out;
  const Json* eager = meta.find_either(kEager);
  if (eager != nullptr && *eager == Json(true)) return std::optional(std::move(out));
  const Json* sizes = meta.find(kSizes);
  if (sizes == nullptr) return std::optional<step_cost::CaptureSizes>{};
  if (!sizes->is_array()) return meta.missing(kSizes, "a list of whole numbers");
  for (const Json& size : *sizes) {
    const bool fits = size.is_number_unsigned() &&
                      size.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
    if (!fits) return meta.missing(kSizes, "a list of whole numbers");
    out.push_back(size.get<std::uint32_t>());
  }
  std::sort(out.begin(), out.end());
  return std::optional(std::move(out));
}

Result<void> read_engine_settings(const ForeignJson& meta, BundleSettings& out) {
  if (meta.find("/engine_kwargs") == nullptr) {
    return meta.missing("/engine_kwargs", "the engine's settings");
  }
  out.model = meta.text("/model");
  if (out.model.empty()) return meta.missing("/model", "the model's name");
  out.engine = "vLLM " + meta.text("/vllm_version");
  BUBBLESIM_ASSIGN_OR_RETURN(out.max_num_seqs, meta.needed_count("/engine_kwargs/max_num_seqs"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.max_num_batched_tokens,
                             meta.needed_count("/engine_kwargs/max_num_batched_tokens"));
  out.max_model_len = as_count(meta.find_either(kMaxModelLen));
  out.layout.tensor = meta.count("/engine_kwargs/tensor_parallel_size").value_or(1);
  out.layout.data = meta.count("/engine_kwargs/data_parallel_size").value_or(1);
  out.layout.expert_parallel =
      meta.flag("/engine_kwargs/enable_expert_parallel").value_or(false);
  constexpr std::string_view kPipeline = "/engine_kwargs/pipeline_parallel_size";
  if (meta.count(kPipeline).value_or(1) > 1) {
    return meta.missing(kPipeline, "1: no server is simulated whose layers are spread over GPUs");
  }
  count_ignored(meta, out.ignored);
  return {};
}

/// Nothing: not recorded.
Result<std::optional<double>> read_memory_share(const ForeignJson& meta) {
  constexpr std::string_view kShare = "/kv_cache/gpu_memory_utilization";
  const std::optional<double> share = meta.number(kShare);
  if (share && !(*share > 0 && *share <= 1)) {
    return meta.missing(kShare, "a share of the GPU's memory, above 0 and at most 1");
  }
  return share;
}

Result<void> read_resolved_settings(const ForeignJson& meta, BundleSettings& out) {
  out.gpu_name = meta.text("/hardware/device_name");
  out.num_gpu_blocks = meta.count("/kv_cache/num_gpu_blocks");
  out.block_size = meta.count("/kv_cache/block_size");
  out.prefix_caching = meta.flag("/kv_cache/enable_prefix_caching");
  BUBBLESIM_ASSIGN_OR_RETURN(out.memory_utilization, read_memory_share(meta));
  out.async_scheduling = meta.flag("/resolved_config/scheduler_config/async_scheduling");
  out.reserve_full_prompt =
      meta.flag("/resolved_config/scheduler_config/scheduler_reserve_full_isl");
  out.long_prefill_token_threshold = as_count(meta.find_either(kLongPrefill));
  out.chunked_prefill = as_flag(meta.find_either(kChunkedPrefill));
  BUBBLESIM_ASSIGN_OR_RETURN(out.capture_sizes, read_capture_sizes(meta));
  return {};
}

/// LLMServingSim's page "Cluster config": link_bw in GB/s, link_latency in ns.
void read_cluster(const ForeignJson& cluster, BundleSettings& out) {
  out.gpu_label = cluster.text("/nodes/0/instances/0/hardware");
  out.layout.link.bandwidth = {1e9 * cluster.number("/link_bw").value_or(0)};
  out.layout.link.latency =
      Duration(std::llround(cluster.number("/link_latency").value_or(0)));
}

Result<MeasuredRequest> read_measured_request(const ForeignJson& line) {
  MeasuredRequest out;
  out.id = line.text("/request_id");
  BUBBLESIM_ASSIGN_OR_RETURN(out.prompt_tokens, line.needed_count("/input_toks"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.output_tokens, line.needed_count("/output_toks"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.arrival, line.needed_number("/arrival_time"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.queued, line.needed_number("/queued_ts"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.first_token, line.needed_number("/first_token_ts"));
  BUBBLESIM_ASSIGN_OR_RETURN(out.last_token, line.needed_number("/last_token_ts"));
  if (out.first_token <= out.queued) {
    return line.missing("/first_token_ts", "a time after queued_ts");
  }
  if (out.last_token < out.first_token) {
    return line.missing("/last_token_ts", "first_token_ts or later");
  }
  return out;
}

Result<std::vector<MeasuredRequest>> read_measured_requests(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  std::vector<MeasuredRequest> out;
  const auto read = [&](std::string_view line, std::size_t number) -> Result<void> {
    if (line.find_first_not_of(" \r") == std::string_view::npos) return {};
    BUBBLESIM_ASSIGN_OR_RETURN(
        const ForeignJson request,
        ForeignJson::parse(std::string(line), path, "line " + std::to_string(number)));
    BUBBLESIM_ASSIGN_OR_RETURN(auto measured, read_measured_request(request));
    out.push_back(std::move(measured));
    return {};
  };
  BUBBLESIM_RETURN_IF_ERROR(each_line(text, read));
  if (out.empty()) return fail(path, {}, "holds no request");
  std::stable_sort(out.begin(), out.end(), [](const MeasuredRequest& a, const MeasuredRequest& b) {
    return a.arrival < b.arrival;
  });
  const double span = out.back().arrival - out.front().arrival;
  if (span > kLongestSpanSeconds) {
    return fail(path, {}, "'" + out.back().id + "' arrives " + std::to_string(span) +
                              " s after the first request; expected arrival_time in seconds, at "
                              "most 1e9 apart");
  }
  return out;
}

std::string label_of(const std::filesystem::path& folder) {
  const auto whole = std::filesystem::absolute(folder).lexically_normal();
  const auto last = whole.has_filename() ? whole : whole.parent_path();
  return (last.parent_path().filename() / last.filename()).string();
}

}  // namespace

Result<ServingBundle> read_serving_bundle(const std::string& folder) {
  const std::filesystem::path given(folder);
  const bool is_inner = std::filesystem::exists(given / "meta.json");
  const std::filesystem::path inner = is_inner ? given : given / "vllm";
  const std::filesystem::path outer =
      is_inner ? std::filesystem::absolute(given).lexically_normal() / ".." : given;
  ServingBundle bundle;
  bundle.folder = folder;
  bundle.label = label_of(outer);
  BUBBLESIM_ASSIGN_OR_RETURN(const ForeignJson meta, read_foreign((inner / "meta.json").string()));
  BUBBLESIM_RETURN_IF_ERROR(read_engine_settings(meta, bundle.settings));
  BUBBLESIM_RETURN_IF_ERROR(read_resolved_settings(meta, bundle.settings));
  if (const auto path = outer / "config.json"; std::filesystem::exists(path)) {
    BUBBLESIM_ASSIGN_OR_RETURN(const ForeignJson cluster, read_foreign(path.string()));
    read_cluster(cluster, bundle.settings);
  }
  const step_cost::ServerLayout& layout = bundle.settings.layout;
  if (layout.tensor * layout.data > 1 && !(layout.link.bandwidth.value > 0)) {
    return fail(folder, "config.json", "no link_bw; a server on several GPUs needs their link");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(bundle.requests,
                             read_measured_requests((inner / "requests.jsonl").string()));
  return bundle;
}

}  // namespace bubblesim::validate
