#include "sim/step_cost/engine_spec.hpp"

#include <chrono>

#include "sim/base/data_file.hpp"
#include "sim/hardware/constant_reader.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr Duration kLongestHostTime = std::chrono::seconds(60);

Duration span(ObjectReader& root, std::string_view key) {
  return hardware::constant(root, key).duration("value", {Duration::zero(), kLongestHostTime});
}

}  // namespace

EngineSpec read_engine(ObjectReader& root) {
  EngineSpec out;
  out.first_step = span(root, "first_step");
  out.prepare = span(root, "prepare");
  out.output = span(root, "output");
  out.gpu_memory_utilization = hardware::number(root, "gpu_memory_utilization", "share", {0.01, 1});
  out.reserved = hardware::constant(root, "reserved").bytes("value");
  root.finish();
  return out;
}

CheckedResult<EngineSpec> find_engine(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "engine"));
  BUBBLESIM_ASSIGN_OR_RETURN(EngineSpec out, read_whole_file(path, read_engine));
  out.id = data_file_id(path);
  return out;
}

}  // namespace bubblesim::step_cost
