#include "sim/base/json_reader.hpp"

#include <functional>

#include "sim/base/check.hpp"
#include "sim/base/json_tree.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/read_recorder.hpp"

namespace bubblesim {

using json_detail::add_fault;
using json_detail::describe;
using json_detail::kind_of;
using json_detail::List;
using json_detail::mismatch;
using json_detail::Object;
using json_detail::ObjectState;
using json_detail::Parsed;
using json_detail::to_flag;
using json_detail::to_ranged;
using json_detail::to_text;

namespace {

void report(ObjectState& state, std::string_view place, std::string message) {
  add_fault(*state.errors, state.tree->file, place, std::move(message));
}

std::string pointer_of(const ObjectState& state, std::string_view key) {
  const bool own = key.empty() || state.spelled_out != nullptr;
  return own ? state.pointer : state.pointer + json_detail::pointer_part(key);
}

// `make_shape` is called only if there is a listener.
template <class MakeShape>
void tell(const ObjectState& state, std::string_view key, Presence presence, JsonCount count,
          const MakeShape& make_shape) {
  if (state.tree->recorder == nullptr) return;
  state.tree->recorder->on_read(
      {state.pointer, key, state.object != nullptr, presence, count, make_shape()});
}

template <class Shape>
void tell_one(const ObjectState& state, std::string_view key, Presence presence, Shape shape) {
  tell(state, key, presence, JsonCount::kOne, [&] { return JsonShape(shape); });
}

template <class Shape>
void tell_list(const ObjectState& state, std::string_view key, Presence presence, Shape shape) {
  tell(state, key, presence, JsonCount::kList, [&] { return JsonShape(shape); });
}

// The value, or nullopt after a fault or if the key is absent (`node` is null).
template <class T>
std::optional<T> accept(ObjectState& state, std::string_view key, const json_detail::Node* node,
                        const std::function<Parsed<T>(const json_detail::Node&)>& parse) {
  if (node == nullptr) return std::nullopt;
  Parsed<T> value = parse(*node);
  if (value) return std::move(*value);
  report(state, pointer_of(state, key), std::move(value).error());
  return std::nullopt;
}

template <class T>
std::vector<T> accept_list(ObjectState& state, std::string_view key, const json_detail::Node* node,
                           const std::function<Parsed<T>(const json_detail::Node&)>& parse) {
  std::vector<T> out;
  if (node == nullptr) return out;
  const auto* list = std::get_if<List>(&node->value);
  if (list == nullptr) {
    report(state, pointer_of(state, key), "found " + describe(*node) + "; expected a list");
    return out;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    Parsed<T> value = parse((*list)[i]);
    if (value) {
      out.push_back(std::move(*value));
    } else {
      report(state, pointer_of(state, key) + "/" + std::to_string(i), std::move(value).error());
    }
  }
  return out;
}

std::shared_ptr<ObjectState> child_state(const ObjectState& parent, std::string pointer,
                                         const Object* object) {
  auto state = std::make_shared<ObjectState>();
  state->tree = parent.tree;
  state->errors = parent.errors;
  state->object = object;
  state->pointer = std::move(pointer);
  return state;
}

std::shared_ptr<ObjectState> spelled_out(const ObjectState& parent, std::string pointer,
                                         std::string_view key, const json_detail::Node& text) {
  auto state = child_state(parent, std::move(pointer), nullptr);
  state->spelled_out = std::make_unique<Object>();
  state->spelled_out->members.push_back({std::string(key), text});
  state->spelled_out->by_name.push_back(0);
  state->object = state->spelled_out.get();
  return state;
}

void finish_state(ObjectState& state) {
  if (state.object == nullptr || state.finished) return;
  state.finished = true;
  const std::vector<std::string_view> declared(state.declared.begin(), state.declared.end());
  for (const auto& [name, node] : state.object->members) {
    if (state.errors->size() > json_detail::kMaxFaults) return;
    if (state.declared.contains(name)) continue;
    report(state, pointer_of(state, name), unknown_name_message("key", name, declared));
  }
  // Depth is bounded by the parser, so recursion is too.
  for (const auto& [key, states] : state.children) {
    for (const auto& child : states) finish_state(*child);
  }
}

}  // namespace

ObjectReader::ObjectReader(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool ObjectReader::present() const { return state_->object != nullptr; }
const std::string& ObjectReader::pointer() const { return state_->pointer; }
std::string ObjectReader::pointer(std::string_view key) const { return pointer_of(*state_, key); }

std::vector<std::string> ObjectReader::keys() const {
  std::vector<std::string> out;
  if (!present()) return out;
  for (const auto& member : state_->object->members) {
    const bool schema = state_->pointer.empty() && member.name == json_detail::kSchemaKey;
    if (!schema) out.push_back(member.name);
  }
  return out;
}

void ObjectReader::declare(std::string_view key) { state_->declared.emplace(key); }

const ObjectReader::Node* ObjectReader::find(std::string_view key, Presence presence) {
  declare(key);
  if (!present()) return nullptr;
  const Node* node = state_->object->find(key);
  if (node == nullptr && presence == Presence::kRequired) {
    report(*state_, state_->pointer, "required key " + quote_found(key) + " is missing");
  }
  return node;
}

bool ObjectReader::recording() const { return state_->tree->recorder != nullptr; }

void ObjectReader::record_default(std::string_view key, const JsonDefault& value) {
  if (recording()) state_->tree->recorder->on_default(state_->pointer, key, value);
}

bool ObjectReader::has(std::string_view key) {
  tell_one(*state_, key, Presence::kOptional, AnyShape{});
  return find(key, Presence::kOptional) != nullptr;
}

JsonKind ObjectReader::kind(std::string_view key) {
  tell_one(*state_, key, Presence::kOptional, AnyShape{});
  const Node* node = find(key, Presence::kOptional);
  return node == nullptr ? JsonKind::kAbsent : kind_of(*node);
}

std::string ObjectReader::raw(std::string_view key) {
  tell_one(*state_, key, Presence::kOptional, AnyShape{});
  const Node* node = find(key, Presence::kOptional);
  return node == nullptr ? std::string() : json_detail::to_json_text(*node);
}

JsonScalar ObjectReader::scalar(std::string_view key) {
  tell_one(*state_, key, Presence::kOptional, AnyShape{});
  const Node* node = find(key, Presence::kOptional);
  if (node == nullptr) return std::string();
  if (const auto* flag = std::get_if<bool>(&node->value)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&node->value)) return *integer;
  if (const auto* number = std::get_if<double>(&node->value)) return *number;
  if (const auto* text = std::get_if<std::string>(&node->value)) return *text;
  const auto* count = std::get_if<std::uint64_t>(&node->value);
  if (count != nullptr && std::in_range<std::int64_t>(*count)) {
    return static_cast<std::int64_t>(*count);
  }
  return json_detail::to_json_text(*node);
}

bool ObjectReader::require(std::string_view key, std::string message) {
  tell_one(*state_, key, Presence::kRequired, AnyShape{});
  const bool found = find(key, Presence::kOptional) != nullptr;
  if (!found && present()) fault("", std::move(message));
  return found;
}

void ObjectReader::one_of(std::initializer_list<std::string_view> keys) {
  BUBBLESIM_CHECK(keys.size() >= 2, "one of at least two keys");
  if (recording()) state_->tree->recorder->on_one_of(state_->pointer, keys);
  std::vector<std::string> found;
  for (const std::string_view key : keys) {
    if (has(key)) found.push_back(quote_found(key));
  }
  if (!present() || found.size() == 1) return;
  std::string text = found.empty() ? "expected " : "found all of ";
  if (found.size() == 2) text = "found both ";
  for (std::size_t i = 0; i < found.size(); ++i) text += (i == 0 ? "" : " and ") + found[i];
  if (!found.empty()) return fault("", text + "; expected one of them");
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    const bool last = key + 1 == keys.end();
    text += (key == keys.begin() ? "" : last ? " or " : ", ") + quote_found(*key);
  }
  fault("", text + "; found neither");
}

void ObjectReader::defined_by(std::string_view key, std::string_view definition) {
  tell(*state_, key, Presence::kOptional, JsonCount::kOne,
       [&] { return JsonShape(DefinedShape{std::string(definition)}); });
  declare(key);
}

std::optional<std::string> ObjectReader::text_of(std::string_view key, Presence presence) {
  tell_one(*state_, key, presence, TextShape{});
  return accept<std::string>(*state_, key, find(key, presence), to_text);
}

std::string ObjectReader::text(std::string_view key) {
  return text_of(key, Presence::kRequired).value_or("");
}
std::string ObjectReader::text(std::string_view key, std::string_view fallback) {
  if (recording()) record_default(key, std::string(fallback));
  return text_of(key, Presence::kOptional).value_or(std::string(fallback));
}

void ObjectReader::expect(std::string_view key, std::string_view text) {
  tell(*state_, key, Presence::kRequired, JsonCount::kOne,
       [&] { return JsonShape(ChoiceShape{{std::string(text)}}); });
  const auto found = accept<std::string>(*state_, key, find(key, Presence::kRequired), to_text);
  if (!found || *found == text) return;
  fault(key, "found " + quote_found(*found) + "; expected " + quote_found(text));
}

std::optional<bool> ObjectReader::flag_of(std::string_view key, Presence presence) {
  tell_one(*state_, key, presence, FlagShape{});
  return accept<bool>(*state_, key, find(key, presence), to_flag);
}
bool ObjectReader::flag(std::string_view key) {
  return flag_of(key, Presence::kRequired).value_or(false);
}
bool ObjectReader::flag(std::string_view key, bool fallback) {
  record_default(key, fallback);
  return flag_of(key, Presence::kOptional).value_or(fallback);
}

template <class T>
T ObjectReader::ranged(std::string_view key, Range<T> range, std::optional<T> fallback) {
  const Presence presence = fallback ? Presence::kOptional : Presence::kRequired;
  tell_one(*state_, key, presence, range);
  if (fallback) record_default(key, *fallback);
  return accept<T>(*state_, key, find(key, presence),
                   [range](const Node& node) { return to_ranged(node, range); })
      .value_or(fallback.value_or(range.low));
}

template <class T>
std::vector<T> ObjectReader::ranged_list(std::string_view key, Range<T> range, Presence presence) {
  tell_list(*state_, key, presence, range);
  return accept_list<T>(*state_, key, find(key, presence),
                        [range](const Node& node) { return to_ranged(node, range); });
}

// integer() and integers() of the header.
template std::int64_t ObjectReader::ranged(std::string_view, Range<std::int64_t>,
                                           std::optional<std::int64_t>);
template std::uint64_t ObjectReader::ranged(std::string_view, Range<std::uint64_t>,
                                            std::optional<std::uint64_t>);
template std::vector<std::int64_t> ObjectReader::ranged_list(std::string_view,
                                                             Range<std::int64_t>, Presence);
template std::vector<std::uint64_t> ObjectReader::ranged_list(std::string_view,
                                                              Range<std::uint64_t>, Presence);

double ObjectReader::number(std::string_view key, Range<double> range) {
  return ranged(key, range);
}
double ObjectReader::number(std::string_view key, Range<double> range, double fallback) {
  return ranged<double>(key, range, fallback);
}
Duration ObjectReader::duration(std::string_view key, Range<Duration> range) {
  return ranged(key, range);
}
Duration ObjectReader::duration(std::string_view key, Range<Duration> range, Duration fallback) {
  return ranged<Duration>(key, range, fallback);
}
Bytes ObjectReader::bytes(std::string_view key, Range<Bytes> range) { return ranged(key, range); }
Bytes ObjectReader::bytes(std::string_view key, Range<Bytes> range, Bytes fallback) {
  return ranged<Bytes>(key, range, fallback);
}
BytesPerSecond ObjectReader::rate(std::string_view key, Range<BytesPerSecond> range) {
  return ranged(key, range);
}
BytesPerSecond ObjectReader::rate(std::string_view key, Range<BytesPerSecond> range,
                                  BytesPerSecond fallback) {
  return ranged<BytesPerSecond>(key, range, fallback);
}

std::optional<std::size_t> ObjectReader::choice_of(std::string_view key, Presence presence,
                                                   std::span<const std::string_view> allowed) {
  BUBBLESIM_CHECK(!allowed.empty(), "a choice needs at least one name");
  tell(*state_, key, presence, JsonCount::kOne, [&] {
    return JsonShape(ChoiceShape{std::vector<std::string>(allowed.begin(), allowed.end())});
  });
  const auto parse = [&](const Node& node) -> Parsed<std::size_t> {
    const auto* text = std::get_if<std::string>(&node.value);
    if (text == nullptr) return mismatch(node, "one of " + list_names(allowed));
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if (allowed[i] == *text) return i;
    }
    return tl::unexpected<std::string>(unknown_name_message(key, *text, allowed));
  };
  return accept<std::size_t>(*state_, key, find(key, presence), parse);
}

std::string ObjectReader::choice(std::string_view key, std::span<const std::string_view> allowed) {
  return std::string(allowed[choice_of(key, Presence::kRequired, allowed).value_or(0)]);
}
std::string ObjectReader::choice(std::string_view key, std::span<const std::string> allowed) {
  return choice(key, std::vector<std::string_view>(allowed.begin(), allowed.end()));
}

std::vector<std::string> ObjectReader::texts(std::string_view key, Presence presence) {
  tell_list(*state_, key, presence, TextShape{});
  return accept_list<std::string>(*state_, key, find(key, presence), to_text);
}

std::vector<double> ObjectReader::numbers(std::string_view key, Range<double> range,
                                          Presence presence) {
  return ranged_list(key, range, presence);
}

std::vector<Duration> ObjectReader::durations(std::string_view key, Range<Duration> range) {
  return ranged_list(key, range, Presence::kRequired);
}

ObjectReader ObjectReader::child(std::string_view key, Presence presence) {
  tell_one(*state_, key, presence, ObjectShape{});
  const Node* node = find(key, presence);
  auto& states = state_->children[std::string(key)];
  if (!states.empty()) return ObjectReader(states.front());
  const auto* object = node == nullptr ? nullptr : std::get_if<Object>(&node->value);
  if (node != nullptr && object == nullptr) {
    fault(key, "found " + describe(*node) + "; expected an object");
  }
  states.push_back(child_state(*state_, pointer(key), object));
  return ObjectReader(states.front());
}

std::vector<ObjectReader> ObjectReader::children(std::string_view key, Presence presence) {
  return children_of(key, presence, {});
}

std::vector<ObjectReader> ObjectReader::children_or_texts(std::string_view key,
                                                          std::string_view short_for) {
  return children_of(key, Presence::kRequired, short_for);
}

// `short_for` is empty if texts are no elements.
std::vector<ObjectReader> ObjectReader::children_of(std::string_view key, Presence presence,
                                                    std::string_view short_for) {
  tell_list(*state_, key, presence, ObjectShape{});
  const auto is_short = [&](const Node& node) {
    return !short_for.empty() && std::holds_alternative<std::string>(node.value);
  };
  const auto to_object = [&](const Node& node) -> Parsed<const Object*> {
    if (const auto* object = std::get_if<Object>(&node.value)) return object;
    if (is_short(node)) return static_cast<const Object*>(nullptr);
    return mismatch(node, "an object");
  };
  auto& states = state_->children[std::string(key)];
  if (states.empty()) {
    const Node* node = find(key, presence);
    const auto* list = node == nullptr ? nullptr : std::get_if<List>(&node->value);
    (void)accept_list<const Object*>(*state_, key, node, to_object);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const Node& element = (*list)[i];
      const auto* object = std::get_if<Object>(&element.value);
      std::string place = pointer(key) + "/" + std::to_string(i);
      if (is_short(element)) {
        states.push_back(spelled_out(*state_, std::move(place), short_for, element));
      } else if (object != nullptr) {
        states.push_back(child_state(*state_, std::move(place), object));
      }
    }
  }
  std::vector<ObjectReader> out;
  for (const auto& state : states) out.push_back(ObjectReader(state));
  return out;
}

void ObjectReader::fault(std::string_view key, std::string message) {
  report(*state_, pointer_of(*state_, key), std::move(message));
}

void ObjectReader::finish() { finish_state(*state_); }

}  // namespace bubblesim
