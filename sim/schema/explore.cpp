#include "sim/schema/explore.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/schema/conditions.hpp"
#include "sim/schema/form_recorder.hpp"
#include "sim/schema/probe_values.hpp"

namespace bubblesim::schema {
namespace {

constexpr std::size_t kMostReadings = 200'000;  // a reader that never stops asking for more
constexpr int kMostRounds = 4;

/// By path: choices that decide which keys are read.
using Deciding = std::map<std::string, std::set<std::string>>;

class Explorer {
 public:
  Explorer(const ReadFunction& read, const Deciding& deciding, Form& form)
      : read_(read), deciding_(deciding), form_(form) {}

  void run() {
    waiting_.push_back(Json::object());
    for (std::size_t count = 0; !waiting_.empty(); ++count) {
      BUBBLESIM_CHECK(count < kMostReadings, "the form of a file is not without end");
      const Json document = std::move(waiting_.front());
      waiting_.pop_front();
      read_one(document);
    }
  }

 private:
  void read_one(const Json& json) {
    auto document = JsonDocument::parse(json.dump(), "schema");
    BUBBLESIM_CHECK(document.has_value(), "documents made up are JSON");
    FormRecorder recorder(form_);
    document->record(recorder);
    read_(*document);
    for (const auto& [pointer, visit] : recorder.visits()) {
      form_[recorder.path_of_pointer(pointer)].visits.insert(with_values(json, pointer, visit));
    }
    for (const SeenRead& read : recorder.reads()) {
      add_probes(json, read, context_of(json, read, recorder.visits().at(read.pointer)));
    }
  }

  // What tells one situation of an object from another.
  std::string context_of(const Json& json, const SeenRead& read, const Visit& visit) const {
    const Json& object = json.at(Json::json_pointer(read.pointer));
    std::string context;
    for (const std::string& key : visit.declared) context += key + "\n";
    const auto deciding = deciding_.find(read.path);
    if (deciding == deciding_.end()) return context;
    for (const std::string& key : deciding->second) {
      context += key + "=" + (object.contains(key) ? object[key].dump() : "") + "\n";
    }
    return context;
  }

  static Visit with_values(const Json& json, const std::string& pointer, Visit visit) {
    for (const auto& [key, value] : json.at(Json::json_pointer(pointer)).items()) {
      visit.values[key] = value.is_object() ? "{" : value.is_array() ? "[" : value.dump();
    }
    return visit;
  }

  // Each value of a key once in every situation of its object.
  void add_probes(const Json& json, const SeenRead& read, const std::string& context) {
    for (const Json& value : probe_values(read.count, read.shape)) {
      if (!tried_.emplace(read.path, read.key, value.dump(), context).second) continue;
      Json next = json;
      next[Json::json_pointer(read.pointer)][read.key] = value;
      waiting_.push_back(std::move(next));
    }
  }

  const ReadFunction& read_;
  const Deciding& deciding_;
  Form& form_;
  std::deque<Json> waiting_;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> tried_;
};

}  // namespace

Form explore(const ReadFunction& read) {
  Deciding deciding;
  for (int round = 0;; ++round) {
    Form form;
    form[""];
    Explorer(read, deciding, form).run();
    Deciding found;
    for (const auto& [path, object] : form) {
      std::set<std::string> keys = deciding_choices(object);
      if (!keys.empty()) found[path] = std::move(keys);
    }
    if (found == deciding || round == kMostRounds) return form;
    deciding = std::move(found);
  }
}

}  // namespace bubblesim::schema
