#include "traces/import/chakra/chakra_attributes.hpp"

#include <limits>

#include "sim/base/utf8.hpp"
#include "traces/import/chakra/chakra_node.hpp"
#include "traces/import/json_fields.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces::chakra {
namespace {

constexpr std::string_view kPrefix = "bubblesim_";
constexpr std::uint32_t kMostRanks = 1U << 24U;

template <class Integer>
std::optional<Integer> fit(const AttributeValue& value) {
  if (!value.number || *value.number > std::numeric_limits<Integer>::max()) return std::nullopt;
  return static_cast<Integer>(*value.number);
}

std::optional<std::int64_t> as_time(const AttributeValue& value) {
  if (!value.number) return std::nullopt;
  const auto time = static_cast<std::int64_t>(*value.number);
  if (time <= -kTimeLimit || time >= kTimeLimit) return std::nullopt;
  return time;
}

std::optional<std::array<std::uint32_t, 3>> as_triple(const AttributeValue& value) {
  if (!value.numbers || value.numbers->size() != 3) return std::nullopt;
  std::array<std::uint32_t, 3> out{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t number = (*value.numbers)[i];
    if (number == 0 || number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    out[i] = static_cast<std::uint32_t>(number);
  }
  return out;
}

/// Assigns what was read; false where nothing was.
template <class Target, class Value>
bool put(Target& target, const std::optional<Value>& value) {
  if (value) target = *value;
  return value.has_value();
}

std::string_view text_of(const AttributeValue& value) { return value.text.value_or(""); }

enum class Outcome { kUnknownName, kTaken, kUnreadable };

Outcome outcome(bool read) { return read ? Outcome::kTaken : Outcome::kUnreadable; }

/// The schema's usual attributes, as the PyTorch converter and ASTRA-sim name them.
Outcome apply_plain(std::string_view name, const AttributeValue& value, ChakraNode& node,
                    File& file) {
  if (name == "is_cpu_op") {
    node.on_cpu = value.number.value_or(0) != 0;
    return outcome(value.number.has_value());
  }
  if (name == "comm_type") {
    if (value.number) node.comm_type = static_cast<std::int64_t>(*value.number);
    return outcome(value.number.has_value());
  }
  if (name == "comm_size") return outcome(put(node.comm_size, value.number));
  if (name == "tensor_size") return outcome(put(node.tensor_size, value.number));
  if (name == "stream") return outcome(put(node.stream, value.number));
  if (name == "tid") return outcome(put(node.tid, value.number));
  if (name == "comm_src") return outcome(put(node.source, fit<std::uint32_t>(value)));
  if (name == "comm_dst") return outcome(put(node.destination, fit<std::uint32_t>(value)));
  if (name == "pg_name") {
    if (value.text) {
      node.group = intern_name(*value.text, file);
    } else if (value.number) {
      node.group = intern_name(std::to_string(*value.number), file);
    }
    return outcome(node.group.has_value());
  }
  if (name == "involved_dim") {
    if (value.numbers) {
      node.involves_dims = std::find(value.numbers->begin(), value.numbers->end(), 0U) !=
                           value.numbers->end();
    }
    return outcome(value.numbers.has_value());
  }
  return Outcome::kUnknownName;
}

bool apply_kind(std::string_view text, OwnFields& own) {
  if (const auto device = value_of<std::uint8_t>(kDeviceOpKindNames, text)) {
    own.what = OwnFields::What::kDeviceOp;
    own.kind = *device;
  } else if (const auto host = value_of<std::uint8_t>(kHostKinds, text)) {
    own.what = OwnFields::What::kHostCall;
    own.kind = *host;
  } else if (text == kMarkerKind) {
    own.what = OwnFields::What::kMarker;
  } else if (text == kStallKind) {
    own.what = OwnFields::What::kStall;
  } else {
    return false;
  }
  return true;
}

Outcome apply_own_text(std::string_view name, const AttributeValue& value, OwnFields& own,
                       File& file) {
  const std::string_view text = text_of(value);
  if (name == "kind") return outcome(apply_kind(text, own));
  if (name == "direction") {
    return outcome(put(own.direction, value_of<CopyDirection>(kDirections, text)));
  }
  if (name == "collective") {
    return outcome(put(own.collective.kind, value_of<CollectiveKind>(kCollectiveKindNames, text)));
  }
  if (name == "marker") {
    return outcome(put(own.sort, value_of<std::uint8_t>(kMarkerKindNames, text)));
  }
  if (name == "stall") {
    return outcome(put(own.sort, value_of<std::uint8_t>(kStallKindNames, text)));
  }
  if (name == "group") {
    if (value.text) own.collective.group = intern_name(text, file);
    return outcome(value.text.has_value());
  }
  return Outcome::kUnknownName;
}

Outcome apply_own_list(std::string_view name, const AttributeValue& value, OwnFields& own) {
  if (name == "grid") {
    own.has_shape = put(own.shape.grid, as_triple(value));
    return outcome(own.has_shape);
  }
  if (name == "block") return outcome(put(own.shape.block, as_triple(value)));
  if (name == "inferred_edges") return outcome(put(own.inferred_edges, value.numbers));
  if (name == "peers") {
    if (!value.numbers) return Outcome::kUnreadable;
    for (const std::uint64_t rank : *value.numbers) {
      if (rank >= kMostRanks) continue;
      own.collective.peers.push_back(static_cast<std::uint32_t>(rank));
    }
    return Outcome::kTaken;
  }
  return Outcome::kUnknownName;
}

Outcome apply_own_number(std::string_view name, const AttributeValue& value, OwnFields& own) {
  if (name == "start_ns") return outcome(put(own.start_ns, as_time(value)));
  if (name == "duration_ns") return outcome(put(own.duration_ns, as_time(value)));
  if (name == "stream") return outcome(put(own.stream, fit<std::uint32_t>(value)));
  if (name == "thread") return outcome(put(own.thread, fit<std::uint32_t>(value)));
  if (name == "correlation") return outcome(put(own.correlation, value.number));
  if (name == "event") return outcome(put(own.event, value.number));
  if (name == "bytes") return outcome(put(own.bytes, value.number));
  if (name == "number") {
    if (value.number) own.number = static_cast<std::int64_t>(*value.number);
    return outcome(value.number.has_value());
  }
  if (name == "registers") {
    return outcome(put(own.shape.registers_per_thread, fit<std::uint16_t>(value)));
  }
  if (name == "shared_memory") {
    return outcome(put(own.shape.shared_memory_bytes, fit<std::uint32_t>(value)));
  }
  Collective& collective = own.collective;
  if (name == "group_size") return outcome(put(collective.group_size, fit<std::uint32_t>(value)));
  if (name == "place") return outcome(put(collective.place, fit<std::uint32_t>(value)));
  if (name == "sequence" || name == "sequence_by_order") {
    const bool read = put(collective.sequence, value.number);
    collective.sequence_recorded = read && name == "sequence";
    return outcome(read);
  }
  return Outcome::kUnknownName;
}

Outcome apply_own(std::string_view name, const AttributeValue& value, ChakraNode& node,
                  File& file) {
  if (!node.own) node.own = std::make_unique<OwnFields>();
  Outcome done = apply_own_number(name, value, *node.own);
  if (done == Outcome::kUnknownName) done = apply_own_text(name, value, *node.own, file);
  if (done == Outcome::kUnknownName) done = apply_own_list(name, value, *node.own);
  return done;
}

/// The file's tables of streams and threads: a list for each column, of equal lengths.
template <class Row, class Field>
bool apply_column(std::vector<Row>& rows, const AttributeValue& value, Field assign) {
  const std::size_t size = value.numbers ? value.numbers->size() : value.texts.size();
  if (rows.empty()) rows.resize(size);
  if (rows.size() != size || size == 0) return false;
  for (std::size_t i = 0; i < size; ++i) assign(rows[i], i);
  return true;
}

Outcome apply_tables(std::string_view name, const AttributeValue& value, RankTrace& trace) {
  const auto number = [&value](std::size_t i) { return (*value.numbers)[i]; };
  if (name == "thread_names") {
    return outcome(apply_column(trace.threads, value, [&](HostThread& thread, std::size_t i) {
      if (i < value.texts.size()) thread.name = repaired_utf8(value.texts[i]);
    }));
  }
  if (name != "streams" && name != "stream_priorities" && name != "stream_devices" &&
      name != "threads") {
    return Outcome::kUnknownName;
  }
  if (!value.numbers) return Outcome::kUnreadable;
  if (name == "threads") {
    return outcome(apply_column(trace.threads, value, [&](HostThread& thread, std::size_t i) {
      thread.system_id = number(i);
    }));
  }
  return outcome(apply_column(trace.streams, value, [&](Stream& stream, std::size_t i) {
    if (name == "streams") stream.system_id = number(i);
    if (name == "stream_priorities") stream.priority = static_cast<std::int32_t>(number(i));
    if (name == "stream_devices") stream.device = static_cast<std::uint32_t>(number(i));
  }));
}

Outcome apply_device(std::string_view name, const AttributeValue& value, DeviceInfo& device) {
  if (name == "device_name") {
    device.name = repaired_utf8(text_of(value));
    return outcome(value.text.has_value());
  }
  if (name == "device_sms") return outcome(put(device.sm_count, fit<std::uint32_t>(value)));
  if (name == "device_memory") return outcome(put(device.memory_bytes, value.number));
  if (name == "device_compute_major") {
    return outcome(put(device.compute_major, fit<std::uint32_t>(value)));
  }
  if (name == "device_compute_minor") {
    return outcome(put(device.compute_minor, fit<std::uint32_t>(value)));
  }
  return Outcome::kUnknownName;
}

std::vector<std::uint32_t> ranks_in(std::string_view list) {
  std::vector<std::uint32_t> ranks;
  std::uint64_t number = 0;
  bool digits = false;
  for (const char c : list) {
    if (c >= '0' && c <= '9') {
      number = std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(c - '0'),
                                       kMostRanks);
      digits = true;
      continue;
    }
    if (digits && number < kMostRanks) ranks.push_back(static_cast<std::uint32_t>(number));
    number = 0;
    digits = false;
  }
  return ranks;
}

}  // namespace

void apply_attribute(std::string_view name, const AttributeValue& value, ChakraNode& node,
                     File& file) {
  const Outcome done = name.starts_with(kPrefix)
                           ? apply_own(name.substr(kPrefix.size()), value, node, file)
                           : apply_plain(name, value, node, file);
  if (done == Outcome::kUnreadable) file.trace.counters.add(kBadAttributes);
}

void apply_metadata(std::string_view name, const AttributeValue& value, File& file) {
  if (!name.starts_with(kPrefix)) return;
  name.remove_prefix(kPrefix.size());
  Outcome done = apply_device(name, value, file.trace.device);
  if (done == Outcome::kUnknownName) done = apply_tables(name, value, file.trace);
  if (name == "chakra") {
    file.native = value.number == kAttributesVersion;
    done = outcome(value.number.has_value());
  } else if (name == "rank") {
    file.rank = fit<std::uint32_t>(value);
    if (file.rank >= kMostRanks) file.rank.reset();
    done = outcome(file.rank.has_value());
  } else if (name == "world_size") {
    file.world_size = fit<std::uint32_t>(value);
    if (file.world_size > kMostRanks) file.world_size.reset();
    done = outcome(file.world_size.has_value());
  }
  if (done == Outcome::kUnreadable) file.trace.counters.add(kBadAttributes);
}

void read_groups(std::string_view values, File& file) {
  std::size_t at = values.find('{');
  while (at != std::string_view::npos && file.groups.size() < kMostRanks) {
    ChakraGroup group;
    bool named = false;
    const auto take = [&](std::string_view key, const JsonValue& value) {
      if (key == "pg_name") {
        group.name = intern_name(unescape(value.text), file);
        named = true;
      } else if (key == "ranks") {
        group.ranks = ranks_in(value.text);
      } else if (key == "group_size") {
        group.size = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(to_unsigned(value).value_or(0), kMostRanks));
      }
    };
    const FieldReader fields = each_field(values.substr(at), take);
    if (!fields.complete()) return;
    if (!group.ranks.empty()) group.size = static_cast<std::uint32_t>(group.ranks.size());
    if (named) file.groups.push_back(std::move(group));
    at = values.find('{', at + fields.consumed());
  }
}

NameId intern_name(std::string_view text, File& file) {
  if (is_utf8(text)) return file.trace.names.intern(text);
  file.trace.counters.add(kInvalidUtf8);
  return file.trace.names.intern(repaired_utf8(text));
}

std::optional<std::int64_t> micros_to_ns(std::uint64_t micros) {
  if (micros >= static_cast<std::uint64_t>(kTimeLimit) / 1000) return std::nullopt;
  return static_cast<std::int64_t>(micros * 1000);
}

}  // namespace bubblesim::traces::chakra
