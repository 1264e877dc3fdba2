// Any bytes as a schedule's CSV: read, checked, and if sound executed, drawn and read back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/pipeline/check.hpp"
#include "sim/pipeline/csv.hpp"
#include "sim/pipeline/render.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bubblesim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = pipeline::parse_csv(text, "fuzz");
  if (!read) {
    require(!read.error().empty() && !read.error().front().message.empty());
    return 0;
  }
  const pipeline::Schedule& schedule = read->schedule;
  const pipeline::StageGraph graph = pipeline::infer_graph(schedule);
  if (!pipeline::check(schedule, graph).empty()) return 0;
  const auto again = pipeline::parse_csv(pipeline::write_csv(schedule), "fuzz");
  require(again.has_value() && again->schedule.rank_of_stage == schedule.rank_of_stage);
  const pipeline::UnitTimes times;
  const pipeline::Execution execution = pipeline::execute(schedule, graph, times);
  for (const std::int64_t idle : execution.idle) require(idle >= 0);
  require(!pipeline::render_grid(schedule, execution).empty());
  require(!pipeline::render_svg(schedule, execution).empty());
  return 0;
}
