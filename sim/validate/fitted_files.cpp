#include "sim/validate/fitted_files.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <vector>

#include "sim/base/json.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::array<std::string_view, 3> kProtocolNames{"LL", "LL128", "Simple"};

Result<Json> load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(path, "", "cannot be read");
  Json out = Json::parse(in, nullptr, false);
  if (out.is_discarded() || !out.is_object()) return fail(path, "", "expected a JSON object");
  return out;
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> out(1);
  for (const char c : name) {
    if (c == '/') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

Json rounded(double value) { return Json::parse(fmt::format("{:.4g}", value)); }

// As a cluster file spells a value of this unit.
Json cluster_value(const network::FittedConstant& constant) {
  if (constant.unit == "us" || constant.unit == "GB/s") {
    return fmt::format("{:.4g}{}", constant.value, constant.unit);
  }
  if (constant.unit == "KiB") return fmt::format("{}B", std::llround(constant.value * 1024));
  return rounded(constant.value);
}

void set_cluster_constant(Json& root, const network::FittedConstant& constant,
                          const std::string& source) {
  Json* at = &root;
  for (const std::string& part : parts_of(constant.name)) {
    for (std::size_t i = 0; i < kProtocolNames.size(); ++i) {
      if (part != kProtocolNames[i]) continue;
      (*at)["value"][i] = cluster_value(constant);
      const std::string old = at->value("source", "");
      if (!old.starts_with("fitted: ")) (*at)["source"] = source + "; others: " + old;
      return;
    }
    at = &(*at)[part];
  }
  (*at)["value"] = cluster_value(constant);
  (*at)["source"] = source;
}

}  // namespace

Result<std::string> fitted_software_text(const std::string& path, const TrainingFit& fit,
                                         const std::string& source) {
  BUBBLESIM_ASSIGN_OR_RETURN(Json root, load(path));
  for (const FitConstant& constant : fit.constants) {
    Json* at = &root;
    for (const std::string& part : parts_of(constant.name)) at = &(*at)[part];
    const bool factor = constant.name.find('/') != std::string::npos;
    (*at)["value"] = factor ? rounded(constant.value)
                            : Json(fmt::format("{:.4g}us", constant.value * 1e6));
    (*at)["source"] = source;
  }
  return root.dump(2) + "\n";
}

Result<std::string> fitted_cluster_text(const std::string& path, const network::AllReduceFit& fit,
                                        const std::string& source) {
  BUBBLESIM_ASSIGN_OR_RETURN(Json root, load(path));
  for (const network::FittedConstant& constant : fit.constants) {
    set_cluster_constant(root, constant, source);
  }
  return root.dump(2) + "\n";
}

}  // namespace bubblesim::validate
