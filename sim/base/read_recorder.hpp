// Records the keys that a document's readers declare, for sim/schema, which describes files to
// people and editors. A document without a recorder pays a null check a read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/json_reader.hpp"

namespace bubblesim {

/// A read by has, kind or raw, which says nothing of the value.
struct AnyShape {
  friend bool operator==(const AnyShape&, const AnyShape&) = default;
};
struct TextShape {
  friend bool operator==(const TextShape&, const TextShape&) = default;
};
struct FlagShape {
  friend bool operator==(const FlagShape&, const FlagShape&) = default;
};
struct ObjectShape {
  friend bool operator==(const ObjectShape&, const ObjectShape&) = default;
};
/// A text among these, in the order of their declaration.
struct ChoiceShape {
  std::vector<std::string> names;
  friend bool operator==(const ChoiceShape&, const ChoiceShape&) = default;
};
/// Checked by other code, whose form has this name.
struct DefinedShape {
  std::string definition;
  friend bool operator==(const DefinedShape&, const DefinedShape&) = default;
};

/// A Range is a number; a quantity's Range is a text with a unit.
using JsonShape =
    std::variant<AnyShape, TextShape, FlagShape, ObjectShape, ChoiceShape, DefinedShape,
                 Range<std::int64_t>, Range<std::uint64_t>, Range<double>, Range<Duration>,
                 Range<Bytes>, Range<BytesPerSecond>>;

enum class JsonCount : std::uint8_t { kOne, kList };

/// One read of one key. Borrows; valid during the call.
struct JsonRead {
  const std::string& object;  ///< its pointer: "/jobs/0"
  std::string_view key;
  bool object_present = false;  ///< false: the object is absent, and is read only to declare its
                                ///< keys
  Presence presence = Presence::kOptional;
  JsonCount count = JsonCount::kOne;
  JsonShape shape;
};

/// Called in the order of reading. Must not read the document.
class ReadRecorder {
 public:
  ReadRecorder() = default;
  ReadRecorder(const ReadRecorder&) = delete;
  ReadRecorder& operator=(const ReadRecorder&) = delete;
  virtual ~ReadRecorder() = default;

  virtual void on_read(const JsonRead& read) = 0;
  /// The value of the key if it is absent.
  virtual void on_default(const std::string& object, std::string_view key,
                          const JsonDefault& value) = 0;
  /// Exactly one of these keys is present.
  virtual void on_one_of(const std::string& object,
                         const std::vector<std::string_view>& keys) = 0;
};

}  // namespace bubblesim
