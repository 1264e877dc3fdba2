#include "traces/import/nsys_nvtx.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

#include "traces/names/collective_names.hpp"

namespace bubblesim::traces::nsys {
namespace {

constexpr std::size_t kHeadBytes = 32;
constexpr std::size_t kMaxEntries = 4096;

struct NamedField {
  std::string_view name;  ///< as NCCL's schemas name it (src/include/nvtx_payload_schemas.h)
  std::optional<std::uint64_t> PayloadFields::*what;
};
constexpr std::array kFields{
    NamedField{"NCCL communicator ID", &PayloadFields::communicator},
    NamedField{"Message size [bytes]", &PayloadFields::bytes},
    NamedField{"No. of ranks", &PayloadFields::ranks},
    NamedField{"Rank", &PayloadFields::rank},
    NamedField{"CUDA device", &PayloadFields::device},
    NamedField{"Peer rank", &PayloadFields::peer},
};

std::optional<std::uint64_t> PayloadFields::*field_named(std::string_view name) {
  const auto field = std::ranges::find(kFields, name, &NamedField::name);
  return field == kFields.end() ? nullptr : field->what;
}

/// Bytes of an entry by NVTX_PAYLOAD_ENTRY_TYPE_*, on 64-bit Linux; 0: not a number.
std::size_t size_of_type(std::int64_t type) {
  static constexpr std::array<std::uint8_t, 24> kSizes{0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1,
                                                       1, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8};
  const bool known = type > 0 && type < static_cast<std::int64_t>(kSizes.size());
  return known ? kSizes[static_cast<std::size_t>(type)] : 0;
}

std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

struct Entry {
  std::int64_t index;
  std::int64_t type;
  std::optional<std::int64_t> offset;
  std::optional<std::uint64_t> PayloadFields::*what;
};

class PayloadSchemas {
 public:
  explicit PayloadSchemas(NsysSession& session) {
    std::map<Key, std::vector<Entry>> found;
    const auto read = [&found](const Rows& rows) {
      const auto schema = rows.integer(1);
      if (!schema) return;
      found[{*schema, rows.integer(0).value_or(0)}].push_back(
          {rows.integer(2).value_or(0), rows.integer(3).value_or(0), rows.integer(5),
           field_named(rows.text(4).value_or(""))});
    };
    session.each_row("NVTX_PAYLOAD_SCHEMA_ENTRIES",
                     {"domainId", "schemaId", "idx", "type", "name", "offset"}, read, kMaxEntries);
    for (auto& [key, list] : found) {
      std::ranges::stable_sort(list, {}, &Entry::index);
      std::size_t next = 0;
      for (const Entry& entry : list) {
        const std::size_t size = size_of_type(entry.type);
        // An offset that is not given follows from the entries before, each at a multiple of its
        // size.
        std::size_t offset = size == 0 ? next : (next + size - 1) / size * size;
        if (entry.offset && *entry.offset >= 0 && *entry.offset < 65536) {
          offset = static_cast<std::size_t>(*entry.offset);
        }
        next = offset + size;
        if (entry.what != nullptr && size > 0 && size <= 8) {
          schemas_[key].push_back({entry.what, offset, size});
        }
      }
    }
  }

  /// Nothing: the schema is not NCCL's, or the bytes do not fit it.
  [[nodiscard]] std::optional<PayloadFields> decode(std::string_view bytes,
                                                    std::int64_t domain) const {
    if (bytes.size() < kHeadBytes) return std::nullopt;
    const auto schema = static_cast<std::int64_t>(little_endian(bytes, 8, 8));
    const std::uint64_t size = little_endian(bytes, 16, 8);
    if (size > bytes.size() - kHeadBytes) return std::nullopt;
    auto found = schemas_.find({schema, domain});
    // Domains are numbered by process; NCCL's schemas are the same in all.
    if (found == schemas_.end()) {
      found = schemas_.lower_bound({schema, INT64_MIN});
      if (found == schemas_.end() || found->first.first != schema) return std::nullopt;
    }
    PayloadFields payload;
    for (const Field& field : found->second) {
      if (field.offset + field.size > size) return std::nullopt;
      payload.*field.what = little_endian(bytes, kHeadBytes + field.offset, field.size);
    }
    return payload.communicator ? std::optional(payload) : std::nullopt;
  }

 private:
  struct Field {
    std::optional<std::uint64_t> PayloadFields::*what = nullptr;
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< schema, domain
  std::map<Key, std::vector<Field>> schemas_;
};

}  // namespace

std::optional<PayloadFields> payload_of_json(std::string_view text) {
  PayloadFields payload;
  for (const NamedField& field : kFields) {
    const std::string key = '"' + std::string(field.name) + '"';
    std::size_t at = text.find(key);
    if (at == std::string_view::npos) continue;
    at = text.find_first_not_of(" :\"\t\r\n", at + key.size());
    std::uint64_t value = 0;
    std::size_t digits = 0;
    for (; at < text.size() && digits < 20; ++at) {
      if (text[at] == ',' && digits > 0 && at + 1 < text.size() &&
          std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0) {
        continue;
      }
      if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) break;
      value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
      ++digits;
    }
    if (digits > 0) payload.*field.what = value;
  }
  return payload.communicator ? std::optional(payload) : std::nullopt;
}

namespace {

enum NvtxColumn : std::size_t {
  kRangeStart, kRangeEnd, kType, kText, kTextId, kTid, kDomain, kJson, kJsonId, kBinary
};
const Columns kNvtxColumns{
    "start", "end", "eventType", "text", "textId", "globalTid", "domainId", "jsonText",
    "jsonTextId", "binaryData"};

enum class RowKind { kRange, kMark, kOpen, kOther };

/// ENUM_NSYS_EVENT_TYPE: 59 push/pop, 60 start/end, 34 mark, 35 to 38 halves of ranges; 65 to 71
/// the same of NVTX's tiny variant.
RowKind kind_of_row(const Rows& rows) {
  const auto type = rows.integer(kType);
  if (!rows.has(kType) || type == 59 || type == 60 || type == 70 || type == 71) {
    return rows.integer(kRangeEnd) ? RowKind::kRange : RowKind::kOpen;
  }
  if (type == 34 || type == 65) return RowKind::kMark;
  const bool half = type && ((*type >= 35 && *type <= 38) || (*type >= 66 && *type <= 69));
  return half ? RowKind::kOpen : RowKind::kOther;
}

/// "ncclAllReduce": what NCCL names its own ranges by.
bool is_nccl_call(std::string_view name) {
  return name.starts_with("nccl") && name.size() > 4 && name[4] >= 'A' && name[4] <= 'Z';
}

struct NvtxRange {
  RowSpan span;
  std::string name;
  std::int64_t process;
  std::int64_t thread;
};

class NvtxReader {
 public:
  NvtxReader(NsysSession& session, RankSet& set)
      : session_(session), set_(set), schemas_(session) {}

  void read() {
    session_.each_row("NVTX_EVENTS", kNvtxColumns, [this](const Rows& rows) { read_row(rows); });
    session_.count(kOpenRanges, open_);
    session_.count(kOtherNvtx, others_);
    session_.count(kBadPayload, unreadable_);
    session_.count(kScatterBytes, unsized_);
  }

  [[nodiscard]] Communicators take_communicators() { return std::move(communicators_); }

 private:
  void read_row(const Rows& rows) {
    const RowKind kind = kind_of_row(rows);
    if (kind == RowKind::kOther || kind == RowKind::kOpen) {
      ++(kind == RowKind::kOpen ? open_ : others_);
      return;
    }
    const auto tid = rows.integer(kTid);
    Process* owner = set_.process(tid);
    const auto end = kind == RowKind::kMark ? kRangeStart : kRangeEnd;
    const auto span = session_.span(rows.integer(kRangeStart), rows.integer(end));
    if (!span) return session_.count(kBadRows);
    if (owner == nullptr) {
      ++others_;
      return;
    }
    NvtxRange range{*span, {}, owner->id, thread_of(tid.value_or(0))};
    const auto text = rows.text(kText);
    range.name = text ? session_.clean(*text) : session_.name(rows.integer(kTextId));
    if (is_nccl_call(range.name) && read_nccl(rows, *owner, range)) return;
    add_marker(*owner, range);
  }

  /// True: the range is a collective's, and its note is taken.
  bool read_nccl(const Rows& rows, const Process& owner, const NvtxRange& range) {
    const auto payload = payload_of(rows);
    const CollectiveKind kind = kind_of_collective(std::string_view(range.name).substr(4));
    if (!payload) {
      const bool has_any = rows.bytes(kBinary) || rows.text(kJson) || rows.integer(kJsonId);
      unreadable_ += has_any && kind != CollectiveKind::kUnknown ? 1 : 0;
      return false;
    }
    if (payload->ranks && payload->rank) add_communicator(owner, *payload);
    if (kind == CollectiveKind::kUnknown || !payload->bytes) return false;
    add_note(owner, range, kind, *payload);
    return true;
  }

  [[nodiscard]] std::optional<PayloadFields> payload_of(const Rows& rows) {
    if (const auto binary = rows.bytes(kBinary)) {
      if (auto found = schemas_.decode(*binary, rows.integer(kDomain).value_or(0))) return found;
    }
    if (const auto json = rows.text(kJson)) return payload_of_json(*json);
    if (const auto id = rows.integer(kJsonId)) {
      if (const auto json = session_.strings.find(*id)) return payload_of_json(*json);
    }
    return std::nullopt;
  }

  void add_communicator(const Process& owner, const PayloadFields& payload) {
    constexpr std::uint64_t kMost = 1U << 24U;
    if (*payload.ranks == 0 || *payload.ranks > kMost || *payload.rank >= *payload.ranks) {
      ++unreadable_;
      return;
    }
    NvtxCommunicator entry;
    entry.id = *payload.communicator;
    entry.size = static_cast<std::uint32_t>(*payload.ranks);
    entry.rank = static_cast<std::uint32_t>(*payload.rank);
    entry.has_device = payload.device && *payload.device <= kMaxDevice;
    if (entry.has_device) entry.device = static_cast<std::uint32_t>(*payload.device);
    sizes_[entry.id] = entry.size;
    communicators_[owner.id].push_back(entry);
  }

  void add_note(const Process& owner, const NvtxRange& range, CollectiveKind kind,
                const PayloadFields& payload) {
    for (const std::uint32_t place : set_.ranks_with_threads(owner)) {
      RankTrace& trace = set_.ranks[place].trace;
      const auto thread = set_.ranks[place].known_thread(range.thread);
      if (!thread) continue;
      Collective record;
      record.kind = kind;
      record.bytes = *payload.bytes <= kMaxBytes ? *payload.bytes : 0;
      unreadable_ += *payload.bytes <= kMaxBytes ? 0 : 1;
      record.group = trace.names.intern(fmt::format("{:#x}", *payload.communicator));
      const auto size = sizes_.find(*payload.communicator);
      if (size != sizes_.end()) record.group_size = size->second;
      if (kind == CollectiveKind::kReduceScatter) {
        // NCCL names the bytes that a rank receives; its input is one such part a rank.
        const std::uint64_t parts = record.group_size;
        unsized_ += parts == 0 ? 1 : 0;
        record.bytes = parts > 0 && record.bytes <= kMaxBytes / parts ? record.bytes * parts : 0;
      }
      if (payload.peer) name_peer(owner, payload, record);
      trace.notes.push_back({range.span.start, range.span.duration, *thread,
                             CollectiveSource::kNvtx,
                             static_cast<std::uint32_t>(trace.collectives.size())});
      trace.collectives.push_back(std::move(record));
    }
  }

  /// A process with several ranks of the communicator does not say which of them calls.
  void name_peer(const Process& owner, const PayloadFields& payload, Collective& record) const {
    const auto made = communicators_.find(owner.id);
    if (made == communicators_.end() || *payload.peer >= record.group_size) return;
    const NvtxCommunicator* found = nullptr;
    for (const NvtxCommunicator& entry : made->second) {
      if (entry.id != *payload.communicator) continue;
      if (found != nullptr) return;
      found = &entry;
    }
    if (found == nullptr) return;
    record.place = found->rank + 1;
    record.peers = {static_cast<std::uint32_t>(*payload.peer)};
  }

  /// To the ranks that the thread works for, else to the main one.
  void add_marker(const Process& owner, const NvtxRange& range) {
    bool placed = false;
    for (const std::uint32_t place : set_.ranks_with_threads(owner)) {
      if (!set_.ranks[place].known_thread(range.thread)) continue;
      put_marker(set_.ranks[place], range);
      placed = true;
    }
    if (!placed) put_marker(set_.ranks[owner.main], range);
  }

  static void put_marker(NsysRankBuilder& rank, const NvtxRange& range) {
    const MarkerClass known = classify_marker(range.name);
    rank.trace.markers.push_back({range.span.start, range.span.duration,
                                  rank.trace.names.intern(range.name), rank.thread(range.thread),
                                  known.kind, known.number});
  }

  NsysSession& session_;
  RankSet& set_;
  PayloadSchemas schemas_;
  Communicators communicators_;
  std::map<std::uint64_t, std::uint32_t> sizes_;  ///< of communicators
  std::uint64_t open_ = 0;
  std::uint64_t others_ = 0;
  std::uint64_t unreadable_ = 0;
  std::uint64_t unsized_ = 0;
};

}  // namespace

Communicators read_nvtx(NsysSession& session, RankSet& set) {
  NvtxReader reader(session, set);
  reader.read();
  return reader.take_communicators();
}

}  // namespace bubblesim::traces::nsys
