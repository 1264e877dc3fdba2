// Typed reading of JSON configuration. Reports every fault of a file at once, each with the
// file, the JSON pointer, what was found, what is expected and the nearest valid name.
//
//   return read_whole(document, [](ObjectReader& root) {
//   Spec spec;
//   spec.name = root.text("name");                                     // required
//   spec.seed = root.integer<std::uint64_t>("seed", {0, 1000}, 1);     // optional: 1 if absent
//   spec.slice = root.duration("slice", {Duration{1}});  // "1.024ms"
//   ObjectReader gpu = root.child("gpu");
//   spec.sms = gpu.integer<std::uint32_t>("sm_count", {1, 1024});
//   root.finish();                         // unknown keys here and in every child that was read
//   return spec;
//   });
//
// Each read declares its key. A reader with a `fallback` makes the key optional. After a fault
// it returns the fallback, or the least value of the range, so that checking goes on.
//
// Reads are the only declaration of a file's form: JSON Schemas are generated from them
// (sim/schema). The root of every file may have a text "$schema", which only editors read.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/quantities.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim {

inline constexpr std::size_t kMaxJsonFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxJsonDepth = 64;       ///< objects and lists inside each other
inline constexpr std::size_t kMaxJsonValues = 4000000;  ///< bounds memory; no config is larger

inline constexpr Duration kMaxDuration = Duration::max();

/// Both ends allowed. `{}` is everything, `{low}` is open above.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
  friend bool operator==(const Range&, const Range&) = default;
};
template <>
struct Range<Duration> {
  Duration low = Duration::zero();
  Duration high = kMaxDuration;
  friend bool operator==(const Range&, const Range&) = default;
};
template <>
struct Range<Bytes> {
  Bytes low{0};
  Bytes high{std::numeric_limits<std::uint64_t>::max()};
  friend bool operator==(const Range&, const Range&) = default;
};
template <>
struct Range<BytesPerSecond> {
  BytesPerSecond low{0};
  BytesPerSecond high{std::numeric_limits<double>::max()};
  friend bool operator==(const Range&, const Range&) = default;
};

enum class JsonKind : std::uint8_t { kAbsent, kNull, kFlag, kNumber, kText, kList, kObject };
enum class Presence : std::uint8_t { kRequired, kOptional };

/// An enumerator and its name in files.
template <class E>
struct Choice {
  std::string_view name;
  E value;
};

/// The name of a value; of a value that is not among the choices, the first name.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::string_view choice_name(E value,
                                                     const std::array<Choice<E>, N>& choices) {
  for (const Choice<E>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return choices.front().name;
}

/// A value that is no list and no object.
using JsonScalar = std::variant<bool, std::int64_t, double, std::string>;

/// A fallback, in the form that recorders get.
using JsonDefault = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Duration,
                                 Bytes, BytesPerSecond>;

class ReadRecorder;  // sim/base/read_recorder.hpp

namespace json_detail {
struct Tree;
struct Node;
struct ObjectState;

/// The integer type that is read; others are narrowed from it.
template <std::integral T>
using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
}  // namespace json_detail

/// One object of a document. Cheap to copy; copies share their declarations. The document and the
/// Errors outlive it. `present()` is false for an optional child that is absent and for one of the
/// wrong kind (already reported): every read then gives defaults without a fault.
class ObjectReader {
 public:
  [[nodiscard]] bool present() const;
  /// "/jobs/0"; the root's is "".
  [[nodiscard]] const std::string& pointer() const;
  /// Pointer of a key, escaped: "/jobs/0/na~1me".
  [[nodiscard]] std::string pointer(std::string_view key) const;
  /// Keys in file order, for open maps; call declare() for valid ones.
  [[nodiscard]] std::vector<std::string> keys() const;
  void declare(std::string_view key);

  /// Both declare the key.
  [[nodiscard]] bool has(std::string_view key);
  [[nodiscard]] JsonKind kind(std::string_view key);
  /// The value as compact JSON text; empty if absent. Declares the key.
  [[nodiscard]] std::string raw(std::string_view key);
  /// The value as written; for values that JsonScalar cannot hold (null, lists, objects, integers
  /// from 2^63 on) their raw() text. Declares the key.
  [[nodiscard]] JsonScalar scalar(std::string_view key);

  /// Whether the key is present; if not, `message` becomes a fault of the object.
  [[nodiscard]] bool require(std::string_view key, std::string message);
  /// Exactly one of the keys (at least two) must be present; else a fault.
  void one_of(std::initializer_list<std::string_view> keys);
  /// Other code checks the value; schemas call its form `definition`.
  void defined_by(std::string_view key, std::string_view definition);

  [[nodiscard]] std::string text(std::string_view key);
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback);
  /// Required; the value must be this text.
  void expect(std::string_view key, std::string_view text);

  [[nodiscard]] bool flag(std::string_view key);
  [[nodiscard]] bool flag(std::string_view key, bool fallback);

  template <std::integral T>
  [[nodiscard]] T integer(std::string_view key, Range<T> range = {});
  template <std::integral T>
  [[nodiscard]] T integer(std::string_view key, Range<T> range, std::type_identity_t<T> fallback);

  [[nodiscard]] double number(std::string_view key, Range<double> range);
  [[nodiscard]] double number(std::string_view key, Range<double> range, double fallback);

  [[nodiscard]] Duration duration(std::string_view key, Range<Duration> range = {});
  [[nodiscard]] Duration duration(std::string_view key, Range<Duration> range, Duration fallback);
  [[nodiscard]] Bytes bytes(std::string_view key, Range<Bytes> range = {});
  [[nodiscard]] Bytes bytes(std::string_view key, Range<Bytes> range, Bytes fallback);
  [[nodiscard]] BytesPerSecond rate(std::string_view key, Range<BytesPerSecond> range = {});
  [[nodiscard]] BytesPerSecond rate(std::string_view key, Range<BytesPerSecond> range,
                                    BytesPerSecond fallback);

  /// One of `allowed` (not empty); after a fault the first.
  [[nodiscard]] std::string choice(std::string_view key, std::span<const std::string_view> allowed);
  [[nodiscard]] std::string choice(std::string_view key, std::span<const std::string> allowed);
  template <class E, std::size_t N>
  [[nodiscard]] E choice(std::string_view key, const std::array<Choice<E>, N>& choices);
  template <class E, std::size_t N>
  [[nodiscard]] E choice(std::string_view key, const std::array<Choice<E>, N>& choices,
                         std::type_identity_t<E> fallback);

  /// Lists hold only the elements that are valid; an absent optional list is empty.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key,
                                               Presence presence = Presence::kRequired);
  [[nodiscard]] std::vector<double> numbers(std::string_view key, Range<double> range,
                                            Presence presence = Presence::kRequired);
  template <std::integral T>
  [[nodiscard]] std::vector<T> integers(std::string_view key, Range<T> range = {},
                                        Presence presence = Presence::kRequired);
  [[nodiscard]] std::vector<Duration> durations(std::string_view key,
                                                Range<Duration> range = {});

  [[nodiscard]] ObjectReader child(std::string_view key, Presence presence = Presence::kRequired);
  [[nodiscard]] std::vector<ObjectReader> children(std::string_view key,
                                                   Presence presence = Presence::kRequired);
  /// A text in the list stands for an object whose only key is `short_for`, with this text; faults
  /// of that key then have the element's own place.
  [[nodiscard]] std::vector<ObjectReader> children_or_texts(std::string_view key,
                                                            std::string_view short_for);

  /// Reports a fault of a key ("" = of the object) found by the caller.
  void fault(std::string_view key, std::string message);

  /// The last call, once, on the root: reports unknown keys of this object and of every child
  /// that was read, with the nearest declared key. Calling it on a child too does no harm.
  void finish();

 private:
  friend class JsonDocument;
  using State = json_detail::ObjectState;
  using Node = json_detail::Node;

  explicit ObjectReader(std::shared_ptr<State> state);
  const Node* find(std::string_view key, Presence presence);
  [[nodiscard]] bool recording() const;
  void record_default(std::string_view key, const JsonDefault& value);
  std::vector<ObjectReader> children_of(std::string_view key, Presence presence,
                                        std::string_view short_for);
  std::optional<std::string> text_of(std::string_view key, Presence presence);
  std::optional<bool> flag_of(std::string_view key, Presence presence);
  std::optional<std::size_t> choice_of(std::string_view key, Presence presence,
                                       std::span<const std::string_view> allowed);
  // T: a 64-bit integer, a double or a quantity. Without a fallback the key is required.
  template <class T>
  T ranged(std::string_view key, Range<T> range, std::optional<T> fallback = std::nullopt);
  template <class T>
  std::vector<T> ranged_list(std::string_view key, Range<T> range, Presence presence);

  // Shared with the parent object, whose finish() checks its children too.
  std::shared_ptr<State> state_;
};

/// A parsed file. Movable; readers of it must not outlive it.
class JsonDocument {
 public:
  /// A file that cannot be read, is too large or is not JSON (line and column) is a fault.
  [[nodiscard]] static CheckedResult<JsonDocument> load_file(const std::string& path);
  /// `file_label` stands for the file in messages.
  [[nodiscard]] static CheckedResult<JsonDocument> parse(std::string_view text,
                                                         std::string file_label);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  [[nodiscard]] const std::string& file() const;
  /// Tells `recorder`, which outlives the readers, of every read of readers made from now on.
  void record(ReadRecorder& recorder);
  /// Reports duplicate keys into `errors`, and a root that is not an object.
  [[nodiscard]] ObjectReader root(Errors& errors) const;
  /// Reads a file that is one object or a list of them, as root() does; pointers of the latter
  /// begin with "/0", "/1" and so on. Elements that are no objects are faults and are left out.
  [[nodiscard]] std::vector<ObjectReader> roots(Errors& errors) const;

 private:
  explicit JsonDocument(std::unique_ptr<json_detail::Tree> tree);
  std::unique_ptr<json_detail::Tree> tree_;
};

/// What `read` makes of the root of a document; all faults at once.
template <class Read>
auto read_whole(const JsonDocument& document, Read read)
    -> CheckedResult<std::invoke_result_t<Read, ObjectReader&>> {
  Errors errors;
  ObjectReader root = document.root(errors);
  auto made = read(root);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return made;
}

/// What `read` makes of the root of a file's document; all faults at once.
template <class Read>
auto read_whole_file(const std::string& path, Read read)
    -> CheckedResult<std::invoke_result_t<Read, ObjectReader&>> {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read_whole(document, std::move(read));
}

template <std::integral T>
T ObjectReader::integer(std::string_view key, Range<T> range) {
  return static_cast<T>(ranged<json_detail::Widest<T>>(key, {range.low, range.high}));
}

template <std::integral T>
T ObjectReader::integer(std::string_view key, Range<T> range, std::type_identity_t<T> fallback) {
  return static_cast<T>(ranged<json_detail::Widest<T>>(key, {range.low, range.high}, fallback));
}

template <std::integral T>
std::vector<T> ObjectReader::integers(std::string_view key, Range<T> range, Presence presence) {
  std::vector<T> out;
  const Range<json_detail::Widest<T>> widest{range.low, range.high};
  for (const auto value : ranged_list(key, widest, presence)) out.push_back(static_cast<T>(value));
  return out;
}

template <class E, std::size_t N>
E ObjectReader::choice(std::string_view key, const std::array<Choice<E>, N>& choices) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = choices[i].name;
  return choices[choice_of(key, Presence::kRequired, names).value_or(0)].value;
}

template <class E, std::size_t N>
E ObjectReader::choice(std::string_view key, const std::array<Choice<E>, N>& choices,
                       std::type_identity_t<E> fallback) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = choices[i].name;
  const auto index = choice_of(key, Presence::kOptional, names);
  for (std::size_t i = 0; recording() && i < N; ++i) {
    if (choices[i].value == fallback) record_default(key, std::string(names[i]));
  }
  return index ? choices[*index].value : fallback;
}

}  // namespace bubblesim
