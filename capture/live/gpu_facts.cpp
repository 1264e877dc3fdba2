#include "capture/live/gpu_facts.hpp"

#include "capture/substrate/card_state.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {
namespace {

std::string card_of(const std::string& device, const Variables& environment) {
  if (!device.empty()) return device;
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.end() || visible->second.empty()) return "0";
  return visible->second.substr(0, visible->second.find(','));
}

// Without a word on which are visible, those are all that there are.
bool sees_one(const CardReader& reader, const std::string& device, const Variables& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (!device.empty()) return true;
  if (visible == environment.end()) return !reader.read("1");
  return !visible->second.empty() && visible->second.find(',') == std::string::npos;
}

std::string facts_text(const policy::GpuInfo& gpu) {
  return gpu.name + ", " + std::to_string(gpu.sm_count) + " SMs, " + format_bytes(gpu.memory);
}

}  // namespace

GpuFacts facts_of_gpu(const policy::GpuInfo& constants, const std::string& device,
                      const Variables& environment, const std::string& nvml) {
  GpuFacts facts;
  facts.gpu = constants;
  const auto reader = CardReader::open(nvml);
  const auto card = reader ? (*reader)->read(card_of(device, environment))
                           : tl::make_unexpected(reader.error());
  if (!card) {
    facts.text = "the policy was told of " + facts_text(constants) + ", by --device: " +
                 card.error().text();
    return facts;
  }
  facts.is_only_one = sees_one(**reader, device, environment);
  std::string guessed;
  if (!card->name.empty()) facts.gpu.name = card->name;
  if (card->sm_count) facts.gpu.sm_count = *card->sm_count;
  if (card->free_bytes) facts.free = Bytes{*card->free_bytes};
  if (card->memory_bytes) facts.gpu.memory = Bytes{*card->memory_bytes};
  if (!card->sm_count) guessed += "SMs, ";
  if (!card->memory_bytes) guessed += "memory, ";
  facts.text = "the policy was told of " + facts_text(facts.gpu) + ", as the card says; " +
               guessed + "slices and bandwidths are those of " + constants.name + " (--device)";
  return facts;
}

}  // namespace bubblesim::capture
