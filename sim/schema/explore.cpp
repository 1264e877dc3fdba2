#include "sim/schema/explore.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/add_once.hpp"
#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/base/read_recorder.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::schema {
namespace {

// ---- Values that make a reader show what it asks for next. Inside of sim/schema.

struct ProbeValues {
  std::vector<Json> operator()(const AnyShape&) const {
    return {true, 1, "x", Json::object(), Json::array()};
  }
  std::vector<Json> operator()(const TextShape&) const { return {"x"}; }
  std::vector<Json> operator()(const FlagShape&) const { return {true, false}; }
  std::vector<Json> operator()(const ObjectShape&) const { return {Json::object()}; }
  std::vector<Json> operator()(const ChoiceShape& shape) const {
    return {shape.names.begin(), shape.names.end()};
  }
  std::vector<Json> operator()(const DefinedShape&) const { return {}; }
  template <class Integer>
    requires std::integral<Integer>
  std::vector<Json> operator()(const Range<Integer>& range) const {
    const Integer low = std::max(range.low, Integer{0});
    return {low < range.high ? low + 1 : range.high};
  }
  std::vector<Json> operator()(const Range<double>& range) const {
    const double low = std::max(range.low, 0.0);
    return {(low + std::min(range.high, low + 2)) / 2};
  }
  std::vector<Json> operator()(const Range<Duration>& range) const {
    return {format_duration(std::min(range.high, range.low + Duration{1}))};
  }
  std::vector<Json> operator()(const Range<Bytes>& range) const {
    return {format_bytes(std::min(range.high, Bytes{range.low.value + 1}))};
  }
  std::vector<Json> operator()(const Range<BytesPerSecond>& range) const {
    return {format_rate(std::min(range.high, BytesPerSecond{range.low.value + 1}))};
  }
};

// Numbers and quantities are inside the range and not its least value, if there is another.
std::vector<Json> probe_values(JsonCount count, const JsonShape& shape) {
  std::vector<Json> values = std::visit(ProbeValues{}, shape);
  if (count == JsonCount::kOne) return values;
  std::vector<Json> lists{Json::array()};
  for (Json& value : values) lists.push_back(Json::array({std::move(value)}));
  return lists;
}

// ---- Adds one reading of a document to a Form, and keeps what the reading itself declared.

/// One key that was read, and where.
struct SeenRead {
  std::string pointer;  ///< of the object
  std::string path;     ///< the same with "*" for elements of lists
  std::string key;
  JsonCount count = JsonCount::kOne;
  JsonShape shape;
};

KeyForm& key_of(ObjectForm& object, std::string_view key) {
  const auto [at, fresh] = object.keys.try_emplace(std::string(key));
  if (fresh) object.order.push_back(at->first);
  return at->second;
}

class FormRecorder final : public ReadRecorder {
 public:
  explicit FormRecorder(Form& form) : form_(form) {}

  void on_read(const JsonRead& read) override {
    const std::string path = path_of_pointer(read.object);
    const std::string key(read.key);
    add_once(key_of(form_[path], key).shapes, {read.count, read.shape});
    if (read.count == JsonCount::kList && std::holds_alternative<ObjectShape>(read.shape)) {
      lists_.insert(read.object + "/" + key);
    }
    if (!read.object_present) return;
    Visit& visit = visits_[read.object];
    visit.declared.insert(key);
    if (read.presence == Presence::kRequired) visit.required.insert(key);
    reads_.push_back({read.object, path, key, read.count, read.shape});
  }
  void on_default(const std::string& object, std::string_view key,
                  const JsonDefault& value) override {
    add_once(key_of(form_[path_of_pointer(object)], key).defaults, value);
  }
  void on_one_of(const std::string& object, const std::vector<std::string_view>& keys) override {
    form_[path_of_pointer(object)].one_of.insert({keys.begin(), keys.end()});
  }

  /// Reads of objects that were there, in order.
  [[nodiscard]] const std::vector<SeenRead>& reads() const { return reads_; }
  /// Objects that were there, by pointer, without the values.
  [[nodiscard]] const std::map<std::string, Visit>& visits() const { return visits_; }
  [[nodiscard]] std::string path_of_pointer(const std::string& pointer) const {
    std::string path;
    for (std::size_t at = 0; at < pointer.size();) {
      const std::size_t next = std::min(pointer.find('/', at + 1), pointer.size());
      const bool element = lists_.contains(pointer.substr(0, at));
      path += element ? "/*" : pointer.substr(at, next - at);
      at = next;
    }
    return path;
  }

 private:
  Form& form_;
  std::vector<SeenRead> reads_;
  std::map<std::string, Visit> visits_;
  std::set<std::string> lists_;  // pointers of lists of objects
};

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
