#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_tree.hpp"
#include "sim/base/units.hpp"

namespace bubblesim {
namespace {

Result<std::string> read_bytes(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) return fail(path, {}, "no such file");
  if (!std::filesystem::is_regular_file(status)) {
    return fail(path, {}, "not a regular file; expected a JSON file");
  }
  const auto size = std::filesystem::file_size(path, code);
  if (code) return fail(path, {}, "cannot be read: " + code.message());
  if (size > kMaxJsonFileBytes) {
    return fail(path, {}, "found " + std::to_string(size) + " bytes; expected at most " +
                              std::to_string(kMaxJsonFileBytes));
  }
  return read_text_file(path);
}

// The place of the file's schema, for editors.
void declare_schema_key(json_detail::ObjectState& root) {
  root.declared.emplace(json_detail::kSchemaKey);
  const auto* node = root.object == nullptr ? nullptr : root.object->find(json_detail::kSchemaKey);
  if (node == nullptr || json_detail::kind_of(*node) == JsonKind::kText) return;
  json_detail::add_fault(*root.errors, root.tree->file,
                         json_detail::pointer_part(json_detail::kSchemaKey),
                         "found " + json_detail::describe(*node) + "; expected text");
}

// What is no object is a fault.
std::shared_ptr<json_detail::ObjectState> top_state(const json_detail::Tree& tree,
                                                    const json_detail::Node& node,
                                                    std::string pointer, Errors& errors) {
  auto state = std::make_shared<json_detail::ObjectState>();
  state->tree = &tree;
  state->errors = &errors;
  state->pointer = std::move(pointer);
  state->object = std::get_if<json_detail::Object>(&node.value);
  if (state->object == nullptr) {
    json_detail::add_fault(errors, tree.file, state->pointer,
                           "found " + json_detail::describe(node) + "; expected an object");
  }
  return state;
}

void report_duplicates(const json_detail::Tree& tree, Errors& errors) {
  for (const Error& duplicate : tree.duplicate_keys) {
    json_detail::add_fault(errors, duplicate.file, duplicate.place, duplicate.message);
  }
}

}  // namespace

JsonDocument::JsonDocument(std::unique_ptr<json_detail::Tree> tree) : tree_(std::move(tree)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

CheckedResult<JsonDocument> JsonDocument::load_file(const std::string& path) {
  const Result<std::string> text = read_bytes(path);
  if (!text) return tl::make_unexpected(text.error());
  return parse(*text, path);
}

CheckedResult<JsonDocument> JsonDocument::parse(std::string_view text, std::string file_label) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto tree, json_detail::parse_tree(text, std::move(file_label)));
  return JsonDocument(std::make_unique<json_detail::Tree>(std::move(tree)));
}

const std::string& JsonDocument::file() const { return tree_->file; }

void JsonDocument::record(ReadRecorder& recorder) { tree_->recorder = &recorder; }

ObjectReader JsonDocument::root(Errors& errors) const {
  report_duplicates(*tree_, errors);
  auto state = top_state(*tree_, tree_->root, {}, errors);
  declare_schema_key(*state);
  return ObjectReader(std::move(state));
}

std::vector<ObjectReader> JsonDocument::roots(Errors& errors) const {
  const auto* list = std::get_if<json_detail::List>(&tree_->root.value);
  if (list == nullptr) return {root(errors)};
  report_duplicates(*tree_, errors);
  std::vector<ObjectReader> out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto state = top_state(*tree_, (*list)[i], "/" + std::to_string(i), errors);
    if (state->object != nullptr) out.push_back(ObjectReader(std::move(state)));
  }
  return out;
}

}  // namespace bubblesim

namespace bubblesim::json_detail {
namespace {

std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(std::uint64_t value) { return std::to_string(value); }
std::string shown(double value) { return describe(Node{value}).substr(11); }
std::string shown(Duration value) { return format_duration(value); }
std::string shown(Bytes value) { return format_bytes(value); }
std::string shown(BytesPerSecond value) { return format_rate(value); }

// 1e6 and 10.0 are integers too, as JSON Schema has it. From 2^53 on, a double may stand for
// another integer than was written.
template <class Integer>
std::optional<Integer> whole(double value) {
  constexpr double kExact = 9007199254740992.0;
  if (value != std::floor(value) || !(std::abs(value) < kExact)) return std::nullopt;
  const auto integer = static_cast<std::int64_t>(value);
  if (!std::in_range<Integer>(integer)) return std::nullopt;
  return static_cast<Integer>(integer);
}

// "an integer from 1 to 1024", "a duration of at least 1ns". Counts have 0 as their floor, which a
// negative number asks for.
template <class T>
std::string with_range(const std::string& what, const Range<T>& range) {
  const Range<T> open;
  const bool low = range.low > open.low || std::is_same_v<T, std::uint64_t>;
  const bool high = range.high < open.high;
  if (low && high) return what + " from " + shown(range.low) + " to " + shown(range.high);
  if (low) return what + " of at least " + shown(range.low);
  if (high) return what + " of at most " + shown(range.high);
  return what;
}

template <class T>
bool inside(const T& value, const Range<T>& range) {
  return value >= range.low && value <= range.high;
}

// The number that was written, if a T holds it.
template <class T>
std::optional<T> number_in(const Node& node) {
  return std::visit(
      [](const auto& held) -> std::optional<T> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, double> && std::is_integral_v<T>) {
          return whole<T>(held);
        } else if constexpr (std::is_same_v<Held, double> || std::is_same_v<Held, std::int64_t> ||
                             std::is_same_v<Held, std::uint64_t>) {
          if constexpr (std::is_integral_v<T>) {
            if (!std::in_range<T>(held)) return std::nullopt;
          }
          return static_cast<T>(held);
        } else {
          return std::nullopt;
        }
      },
      node.value);
}

template <class T>
Parsed<T> to_number(const Node& node, const Range<T>& range, const std::string& what) {
  const std::optional<T> value = number_in<T>(node);
  if (value && inside(*value, range)) return *value;
  return mismatch(node, with_range(what, range));
}

// A text with a unit. `parse` gives the full message for text; a bare number gets one too.
template <class T>
Parsed<T> to_quantity(const Node& node, const Range<T>& range,
                      Result<T> (*parse)(std::string_view), const std::string& what,
                      const std::string& example) {
  const auto* text = std::get_if<std::string>(&node.value);
  if (text == nullptr) {
    const std::string missing = kind_of(node) == JsonKind::kNumber ? " without a unit" : "";
    return tl::unexpected<std::string>("found " + describe(node) + missing + "; expected " +
                                       with_range(what, range) + " as text such as " + example);
  }
  const Result<T> value = parse(*text);
  if (!value) return tl::unexpected<std::string>(value.error().message);
  if (!inside(*value, range)) return mismatch(node, with_range(what, range));
  return *value;
}

}  // namespace

tl::unexpected<std::string> mismatch(const Node& node, const std::string& expected) {
  return tl::unexpected<std::string>("found " + describe(node) + "; expected " + expected);
}

Parsed<std::string> to_text(const Node& node) {
  if (const auto* text = std::get_if<std::string>(&node.value)) return *text;
  return mismatch(node, "text");
}

Parsed<bool> to_flag(const Node& node) {
  if (const auto* flag = std::get_if<bool>(&node.value)) return *flag;
  return mismatch(node, "true or false");
}

Parsed<std::int64_t> to_ranged(const Node& node, const Range<std::int64_t>& range) {
  return to_number(node, range, "an integer");
}
Parsed<std::uint64_t> to_ranged(const Node& node, const Range<std::uint64_t>& range) {
  return to_number(node, range, "an integer");
}
Parsed<double> to_ranged(const Node& node, const Range<double>& range) {
  return to_number(node, range, "a number");
}
Parsed<Duration> to_ranged(const Node& node, const Range<Duration>& range) {
  return to_quantity(node, range, &parse_duration, "a duration", "\"1.024ms\"");
}
Parsed<Bytes> to_ranged(const Node& node, const Range<Bytes>& range) {
  return to_quantity(node, range, &parse_bytes, "a number of bytes", "\"40GiB\"");
}
Parsed<BytesPerSecond> to_ranged(const Node& node, const Range<BytesPerSecond>& range) {
  return to_quantity(node, range, &parse_rate, "a rate", "\"900GB/s\"");
}

}  // namespace bubblesim::json_detail

namespace bubblesim {

std::string compact_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string indented_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bubblesim
