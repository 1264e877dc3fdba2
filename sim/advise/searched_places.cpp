#include "sim/advise/searched_places.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::advise {
namespace {

// Where searches of a load begin and how far they go, of what the service's own GPUs could serve.
constexpr double kFirstLoads[] = {0.05, 0.15, 0.4, 0.8};
constexpr std::pair<double, double> kLoadRange{0.002, 1.2};
constexpr std::uint32_t kBatchStep = 4;
// GPUs differ if their bubbles do by so much of the time.
constexpr double kGpusDiffer = 0.05;

PlaceRange load_range(const std::string& pointer, double all, std::optional<double> share) {
  const auto text = [](double rate) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", rate);
    return std::string(digits);
  };
  if (share) return {pointer, {text(*share * all)}};
  PlaceRange place{pointer, {}, std::pair(kLoadRange.first * all, kLoadRange.second * all)};
  for (const double load : kFirstLoads) place.values.push_back(text(load * all));
  return place;
}

std::vector<std::string> batch_sizes(std::uint32_t given) {
  std::vector<std::string> values;
  if (given / kBatchStep > 0) values.push_back(std::to_string(given / kBatchStep));
  values.push_back(std::to_string(given));
  values.push_back(std::to_string(given * kBatchStep));
  return values;
}

/// The GPUs with the most idle time, in halves; none where GPUs are alike.
std::vector<std::string> idlest_gpus(const std::vector<double>& bubbles) {
  std::vector<std::string> values;
  if (bubbles.size() < 2) return values;
  const auto [least, most] = std::ranges::minmax(bubbles);
  if (most - least < kGpusDiffer) return values;
  std::vector<std::uint32_t> order(bubbles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return bubbles[a] > bubbles[b]; });
  for (std::size_t count = order.size() / 2; count > 0; count /= 2) {
    order.resize(count);
    std::vector<std::uint32_t> chosen = order;
    std::ranges::sort(chosen);
    values.push_back(Json(chosen).dump());
  }
  return values;
}

// The GPUs of a server over several are no free choice.
bool may_choose_gpus(const Json& filler) {
  return !filler.contains("instances") && !filler.contains("jobs") &&
         sweep::find_value(filler, "/program/engine/tensor_parallel") == nullptr &&
         sweep::find_value(filler, "/program/engine/data_parallel") == nullptr &&
         (!filler.contains("gpus") || filler["gpus"] == "all");
}

void add_filler(const Question& question, const Json& filler, std::size_t number,
                const PartsAlone& alone, std::vector<PlaceRange>& places) {
  const std::string place = "/fillers/" + std::to_string(number);
  const bool searched = question.load == Load::kSearched || question.load_share;
  if (searched && sweep::find_value(filler, "/arrivals/rate_per_s") != nullptr) {
    const double all = alone.fillers[number].requests_per_s *
                       static_cast<double>(alone.filler_gpus[number]);
    places.push_back(load_range(place + "/arrivals/rate_per_s", all, question.load_share));
  }
  if (const Json* batch = sweep::find_value(filler, "/program/batch"); batch != nullptr) {
    places.push_back({place + "/program/batch", batch_sizes(batch->get<std::uint32_t>())});
  }
  if (std::vector<std::string> gpus = idlest_gpus(alone.gpu_bubbles);
      !gpus.empty() && may_choose_gpus(filler)) {
    places.push_back({place + "/gpus", std::move(gpus), std::nullopt, true});
  }
}

}  // namespace

std::vector<PlaceRange> searched_places(const Question& question, const Json& base,
                                        const PartsAlone& alone) {
  std::vector<PlaceRange> places;
  const Json* fillers = sweep::find_value(base, "/fillers");
  for (std::size_t i = 0; fillers != nullptr && i < fillers->size(); ++i) {
    add_filler(question, (*fillers)[i], i, alone, places);
  }
  for (const sweep::SweepAxis& axis : question.axes) {
    const std::string pointer = sweep::numbered(base, axis.pointer);
    std::erase_if(places, [&](const PlaceRange& own) {
      return own.pointer == pointer || own.pointer.starts_with(pointer + '/');
    });
    places.push_back({axis.pointer, axis.values});
  }
  return places;
}

}  // namespace bubblesim::advise
