#include "sim/fit/fitted_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "sim/base/json.hpp"

namespace bubblesim::fit {
namespace {

constexpr std::array<std::string_view, 3> kProtocolNames{"LL", "LL128", "Simple"};

// As config files spell a value of this unit.
Json spelled(const FittedConstant& constant) {
  if (constant.unit == "us" || constant.unit == "GB/s") {
    return fmt::format("{:.4g}{}", constant.value, constant.unit);
  }
  if (constant.unit == "KiB") return fmt::format("{}B", std::llround(constant.value * 1024));
  return Json::parse(fmt::format("{:.4g}", constant.value));
}

}  // namespace

Result<Json> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path, "", "cannot be read");
  Json out = Json::parse(file, nullptr, false);
  if (out.is_discarded() || !out.is_object()) return fail(path, "", "expected a JSON object");
  return out;
}

void put_constant(Json& root, std::string_view path, const Json& value,
                  const std::string& source) {
  Json* at = &root;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    const auto protocol = std::find(kProtocolNames.begin(), kProtocolNames.end(), part);
    if (protocol != kProtocolNames.end()) {
      (*at)["value"][static_cast<std::size_t>(protocol - kProtocolNames.begin())] = value;
      const std::string old = at->value("source", "");
      if (!old.starts_with("fitted: ")) (*at)["source"] = source + "; others: " + old;
      return;
    }
    at = &(*at)[std::string(part)];
  }
  (*at)["value"] = value;
  (*at)["source"] = source;
}

Result<std::string> fitted_text(const std::string& path,
                                const std::vector<FittedConstant>& constants) {
  BUBBLESIM_ASSIGN_OR_RETURN(Json root, load_config(path));
  for (const FittedConstant& constant : constants) {
    put_constant(root, constant.path, spelled(constant), constant.source);
  }
  return indented_text(root, 2) + "\n";
}

}  // namespace bubblesim::fit
