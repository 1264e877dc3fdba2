#include "sim/schema/form_recorder.hpp"

#include <algorithm>

#include "sim/base/add_once.hpp"

namespace bubblesim::schema {
namespace {

KeyForm& key_of(ObjectForm& object, std::string_view key) {
  const auto [at, fresh] = object.keys.try_emplace(std::string(key));
  if (fresh) object.order.push_back(at->first);
  return at->second;
}

}  // namespace

std::string FormRecorder::path_of_pointer(const std::string& pointer) const {
  std::string path;
  for (std::size_t at = 0; at < pointer.size();) {
    const std::size_t next = std::min(pointer.find('/', at + 1), pointer.size());
    const bool element = lists_.contains(pointer.substr(0, at));
    path += element ? "/*" : pointer.substr(at, next - at);
    at = next;
  }
  return path;
}

void FormRecorder::on_read(const JsonRead& read) {
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

void FormRecorder::on_default(const std::string& object, std::string_view key,
                              const JsonDefault& value) {
  add_once(key_of(form_[path_of_pointer(object)], key).defaults, value);
}

void FormRecorder::on_one_of(const std::string& object,
                             const std::vector<std::string_view>& keys) {
  form_[path_of_pointer(object)].one_of.insert({keys.begin(), keys.end()});
}

}  // namespace bubblesim::schema
