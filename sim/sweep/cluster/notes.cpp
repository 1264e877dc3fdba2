// 32 hexadecimal digits of the hash of what follows; then CBOR: a list, the kind first.
#include "sim/sweep/cluster/notes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
namespace {

constexpr std::size_t kDigits = 32;

enum Kind : std::uint8_t { kAsk, kDelivery, kRefusal, kAnswer };

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Json json_of(const Ask& ask) {
  Json held = Json::array();
  for (const HeldRun& run : ask.held) held.push_back(Json::array({run.index, run.started}));
  return Json::array({kAsk, ask.number, ask.host, ask.version, ask.threads, ask.idle, ask.spare,
                      held, ask.leaving});
}

Json json_of(const Delivery& delivery) {
  return Json::array({kDelivery, delivery.took.count(), Json::binary(encode(delivery.record))});
}

Json json_of(const ClusterRefusal& refusal) {
  return Json::array({kRefusal, refusal.index, refusal.reason});
}

Json json_of(const store::PlannedRun& run) {
  Json settings = Json::array();
  for (const store::Setting& setting : run.settings) {
    settings.push_back(Json::array({setting.pointer, setting.value}));
  }
  return Json::array(
      {run.index, run.key, run.point, settings, run.seed, run.repetition, run.config});
}

Json json_of(const ClusterAnswer& answer) {
  Json runs = Json::array();
  for (const store::PlannedRun& run : answer.runs) runs.push_back(json_of(run));
  return Json::array({kAnswer, answer.number, answer.order, answer.sweep, runs});
}

Ask ask_of(const Json& json) {
  Ask ask;
  json.at(1).get_to(ask.number);
  json.at(2).get_to(ask.host);
  json.at(3).get_to(ask.version);
  json.at(4).get_to(ask.threads);
  json.at(5).get_to(ask.idle);
  json.at(6).get_to(ask.spare);
  for (const Json& run : json.at(7)) {
    ask.held.push_back({run.at(0).get<std::uint64_t>(), run.at(1).get<bool>()});
  }
  json.at(8).get_to(ask.leaving);
  return ask;
}

store::PlannedRun run_of(const Json& json) {
  store::PlannedRun run;
  json.at(0).get_to(run.index);
  json.at(1).get_to(run.key);
  json.at(2).get_to(run.point);
  for (const Json& setting : json.at(3)) {
    run.settings.push_back({setting.at(0).get<std::string>(), setting.at(1).get<std::string>()});
  }
  json.at(4).get_to(run.seed);
  json.at(5).get_to(run.repetition);
  json.at(6).get_to(run.config);
  return run;
}

ClusterAnswer answer_of(const Json& json) {
  ClusterAnswer answer;
  json.at(1).get_to(answer.number);
  const auto order = json.at(2).get<std::uint32_t>();
  answer.order = static_cast<LeaderOrder>(std::min<std::uint32_t>(order, 3));
  json.at(3).get_to(answer.sweep);
  for (const Json& run : json.at(4)) answer.runs.push_back(run_of(run));
  return answer;
}

Result<ClusterNote> note_of(const Json& json) {
  switch (json.at(0).get<int>()) {
    case kAsk: return ask_of(json);
    case kDelivery: {
      BUBBLESIM_ASSIGN_OR_RETURN(store::RunRecord record,
                                 store::decode_run_record(json.at(2).get_binary()));
      return Delivery{Duration{json.at(1).get<std::int64_t>()}, std::move(record)};
    }
    case kRefusal:
      return ClusterRefusal{json.at(1).get<std::uint64_t>(), json.at(2).get<std::string>()};
    case kAnswer: return answer_of(json);
    default: return fail("a message of an unknown kind");
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const ClusterNote& note) {
  const Json json = std::visit([](const auto& content) { return json_of(content); }, note);
  std::vector<std::uint8_t> bytes(kDigits);
  Json::to_cbor(json, bytes);
  const std::string digits = hash_text(text_of(bytes).substr(kDigits));
  std::copy(digits.begin(), digits.end(), bytes.begin());
  return bytes;
}

Result<ClusterNote> decode_note(std::span<const std::uint8_t> bytes) {
  const std::string_view text = text_of(bytes);
  if (text.size() < kDigits || hash_text(text.substr(kDigits)) != text.substr(0, kDigits)) {
    return fail("a damaged message");
  }
  // What has the right sum was written by encode(), if perhaps by another version of it.
  try {
    return note_of(Json::from_cbor(bytes.begin() + kDigits, bytes.end()));
  } catch (const Json::exception&) {
    return fail("a message of another form");
  }
}

}  // namespace bubblesim::sweep
