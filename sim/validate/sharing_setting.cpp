#include "sim/validate/sharing_setting.hpp"

#include <filesystem>

#include "sim/base/json_reader.hpp"
#include "sim/policy/parameter_check.hpp"
#include "sim/base/data_file.hpp"

namespace bubblesim::validate {
namespace {

SystemSetting read_system(ObjectReader& object) {
  SystemSetting out;
  out.name = object.text("name");
  out.policy = object.text("policy");
  ObjectReader parameters = object.child("parameters", Presence::kOptional);
  if (!parameters.present()) return out;
  for (const std::string& key : parameters.keys()) {
    std::string text = parameters.raw(key);
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    out.parameters.push_back({key, std::move(text)});
  }
  return out;
}

}  // namespace

CheckedResult<SharingSetting> find_sharing_setting(const std::string& name,
                                                   const std::string& configs) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const std::string path, find_data_file(name, configs + "/validation", "setting"));
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  Errors errors;
  ObjectReader root = document.root(errors);
  SharingSetting out;
  out.name = std::filesystem::path(path).stem().string();
  out.path = path;
  (void)root.text("note", "");
  out.device = root.text("device");
  ObjectReader arrivals = root.child("arrivals");
  (void)arrivals.text("source");
  out.load = arrivals.number("load", {0.01, 1});
  out.ramp = arrivals.number("ramp", {0, 0.99}, 0);
  out.seed = arrivals.integer<std::uint64_t>("seed", {0, 1ULL << 53U}, 1);
  out.least_length = arrivals.duration("least_length", {Duration{1000000000}});
  out.requests = arrivals.integer<std::uint32_t>("requests", {1, 1u << 24U});
  for (ObjectReader& it : root.children("systems")) out.systems.push_back(read_system(it));
  root.finish();
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return out;
}

CheckedResult<policy::ParameterSet> parameters_of(const SystemSetting& system,
                                                  const policy::PolicySpec& spec,
                                                  const SharingSetting& setting) {
  std::vector<policy::GivenParameter> given;
  for (const GivenText& it : system.parameters) given.push_back({it.name, it.text});
  return policy::check_parameters(spec, given, setting.path,
                                  "/systems/" + system.name + "/parameters");
}

}  // namespace bubblesim::validate
