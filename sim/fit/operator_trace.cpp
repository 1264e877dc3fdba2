#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "sim/base/nearest_rank.hpp"
#include "sim/fit/table_readers.hpp"
#include "sim/fit/table_text.hpp"

namespace bubblesim::fit {
namespace {

using model::KernelKind;
using model::KernelWork;
using model::Precision;

using simdjson::dom::element;

struct Operator {
  std::string name;
  std::string types;
  Shapes shapes;
  double seconds = 0;     // of its kernels, summed
  bool tensor_cores = false;
};

// A list of lists of numbers; tensor lists and scalars become empty shapes.
Shapes dims_of(element value) {
  Shapes out;
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return out;
  for (const element item : list) {
    std::vector<double> shape;
    simdjson::dom::array numbers;
    if (item.get(numbers) == simdjson::SUCCESS) {
      for (const element number : numbers) {
        double size = 0;
        if (number.get(size) == simdjson::SUCCESS) shape.push_back(size);
      }
    }
    out.push_back(std::move(shape));
  }
  return out;
}

// The type of the first tensor: "float", "c10::Half", "c10::BFloat16".
std::string first_type(element types) {
  simdjson::dom::array list;
  if (types.get(list) != simdjson::SUCCESS) return {};
  for (const element item : list) {
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS && !text.empty()) return std::string(text);
  }
  return {};
}

std::optional<Precision> precision_of(const Operator& op) {
  if (op.types == "c10::Half") return Precision::kFp16;
  if (op.types == "c10::BFloat16") return Precision::kBf16;
  if (op.types == "float") return op.tensor_cores ? Precision::kTf32 : Precision::kFp32;
  return std::nullopt;
}

// Products with fewer than 8 rows or columns run matrix-vector kernels, which are no tiles. Half
// precision whose rows are not multiples of 16 bytes runs kernels at a quarter of the speed; no
// model that is trained has such sizes.
constexpr double kLeastSide = 8;

bool is_aligned(double n, double k, Precision precision) {
  const double unit = 16 / bytes_of(precision);
  return std::fmod(n, unit) == 0 && std::fmod(k, unit) == 0;
}

std::optional<KernelWork> product_of(const Operator& op, Precision precision) {
  const std::size_t first = op.name == "aten::addmm" ? 1 : 0;
  if (op.shapes.size() < first + 2) return std::nullopt;
  const auto& a = op.shapes[first];
  const auto& b = op.shapes[first + 1];
  const std::size_t rank = op.name == "aten::bmm" ? 3 : 2;
  if (a.size() != rank || b.size() != rank) return std::nullopt;
  const double m = a[rank - 2], k = a[rank - 1], n = b[rank - 1];
  if (std::min({m, n, k}) < kLeastSide || !is_aligned(n, k, precision)) return std::nullopt;
  return gemm_work(op.name.substr(6), precision, m, n, k, rank == 3 ? a[0] : 1);
}

std::optional<KernelWork> stream_of(const Operator& op, Precision precision) {
  if (op.shapes.empty() || op.shapes[0].empty()) return std::nullopt;
  const double elements = elements_of(op.shapes[0]);
  const double size = bytes_of(precision);
  const auto make = [&](KernelKind kind, double passes) {
    return stream_work(op.name.substr(6), kind, precision, elements, passes * size * elements);
  };
  // Rows as long as those of transformers; shorter ones leave most of a block idle.
  constexpr double kLeastRow = 512;
  const bool long_rows = op.shapes[0].back() >= kLeastRow;
  if (op.name == "aten::native_layer_norm" && long_rows) return make(KernelKind::kNormalisation, 2);
  const bool aligned = std::fmod(op.shapes[0].back() * size, 16) == 0;
  if (op.name == "aten::_softmax" && long_rows && aligned) return make(KernelKind::kSoftmax, 2);
  if (op.name == "aten::gelu") return make(KernelKind::kElementwise, 2);
  const bool binary = op.name == "aten::add" || op.name == "aten::mul";
  if (binary && op.shapes.size() > 1 && op.shapes[1] == op.shapes[0]) {
    return make(KernelKind::kElementwise, 3);
  }
  return std::nullopt;
}

// q, k, v: samples x sequence x heads x head size; image models, no mask.
std::optional<KernelWork> attention_of(const Operator& op, Precision precision) {
  if (op.name != "aten::_flash_attention_forward" || op.shapes.size() < 3) return std::nullopt;
  const auto& q = op.shapes[0];
  const auto& k = op.shapes[1];
  constexpr double kLeastKeys = 64;  // shorter ones, and narrow heads, are padded most of all
  constexpr double kLeastHead = 32;
  if (q.size() != 4 || k.size() != 4 || k[1] < kLeastKeys || q[3] < kLeastHead) {
    return std::nullopt;
  }
  KernelWork work = gemm_work("flash attention", precision, q[1], k[1], q[3], q[0] * q[2]);
  work.kind = KernelKind::kAttention;
  work.flops = 4 * q[0] * q[2] * q[1] * k[1] * q[3];
  work.bytes = 2 * (elements_of(q) + elements_of(k)) * bytes_of(precision);
  return work;
}

std::optional<KernelWork> work_of(const Operator& op) {
  const auto precision = precision_of(op);
  if (!precision) return std::nullopt;
  if (op.name == "aten::mm" || op.name == "aten::addmm" || op.name == "aten::bmm") {
    return product_of(op, *precision);
  }
  const auto attention = attention_of(op, *precision);
  return attention ? attention : stream_of(op, *precision);
}

bool uses_tensor_cores(std::string_view kernel) {
  return kernel.find("tensorop") != std::string_view::npos ||
         kernel.find("tf32") != std::string_view::npos ||
         kernel.find("s1688") != std::string_view::npos;
}

using Operators = std::unordered_map<std::int64_t, Operator>;

void take_operator(element event, Operators& out) {
  std::string_view name;
  element args;
  std::int64_t id = 0;
  element dims;
  if (event["name"].get(name) != simdjson::SUCCESS || !name.starts_with("aten::")) return;
  if (event["args"].get(args) != simdjson::SUCCESS) return;
  if (args["External id"].get(id) != simdjson::SUCCESS) return;
  if (args["Input Dims"].get(dims) != simdjson::SUCCESS) return;
  Operator& op = out[id];
  op.name = std::string(name);
  op.shapes = dims_of(dims);
  element types;
  if (args["Input type"].get(types) == simdjson::SUCCESS) op.types = first_type(types);
}

void take_kernel(element event, Operators& operators) {
  std::int64_t id = 0;
  double us = 0;
  std::string_view name;
  if (event["args"]["External id"].get(id) != simdjson::SUCCESS) return;
  // Some profilers write the correlation of the launch there, which names no operator.
  std::int64_t correlation = 0;
  if (event["args"]["correlation"].get(correlation) == simdjson::SUCCESS && correlation == id) {
    return;
  }
  if (event["dur"].get(us) != simdjson::SUCCESS) return;
  if (event["name"].get(name) != simdjson::SUCCESS) return;
  const auto at = operators.find(id);
  if (at == operators.end()) return;
  at->second.seconds += us * 1e-6;
  at->second.tensor_cores = at->second.tensor_cores || uses_tensor_cores(name);
}

template <class Take>
void for_each_event(simdjson::dom::array events, std::string_view category, Take take) {
  for (const element event : events) {
    std::string_view cat;
    if (event["cat"].get(cat) == simdjson::SUCCESS && cat == category) take(event);
  }
}

// Equal operators as one: their median. Ordered by text, so that output never follows a hash.
void add_medians(const Operators& operators, const TableFile& file, KernelMeasurements& out) {
  std::map<std::string, std::pair<KernelWork, std::vector<double>>> groups;
  for (const auto& [id, op] : operators) {
    if (op.seconds <= 0) continue;
    const auto work = work_of(op);
    if (!work) {
      out.counters.add(kKernelRowsUnread);
      continue;
    }
    std::string key = op.name + op.types + (op.tensor_cores ? "t" : "");
    for (const auto& shape : op.shapes) {
      key += "|";
      for (const double size : shape) key += std::to_string(size) + ",";
    }
    auto& group = groups.try_emplace(key, *work, std::vector<double>{}).first->second;
    group.second.push_back(op.seconds);
  }
  for (auto& [key, group] : groups) {
    out.add(file, group.first, upper_median(group.second), 1e9);
  }
}

}  // namespace

CheckedResult<void> read_operator_trace(const TableFile& file, KernelMeasurements& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_table_text(file.path));
  simdjson::dom::parser parser;
  element root;
  simdjson::dom::array events;
  if (const auto code = parser.parse(text).get(root); code != simdjson::SUCCESS) {
    return fail(file.path, {}, "not JSON: " + std::string(simdjson::error_message(code)));
  }
  if (root["traceEvents"].get(events) != simdjson::SUCCESS) {
    return fail(file.path, {}, "no list \"traceEvents\"; expected a Kineto trace");
  }
  Operators operators;
  for_each_event(events, "cpu_op", [&](element event) { take_operator(event, operators); });
  for_each_event(events, "kernel", [&](element event) { take_kernel(event, operators); });
  add_medians(operators, file, out);
  return {};
}

}  // namespace bubblesim::fit
