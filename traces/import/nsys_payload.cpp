#include "traces/import/nsys_payload.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

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
  for (const NamedField& field : kFields) {
    if (field.name == name) return field.what;
  }
  return nullptr;
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

}  // namespace

PayloadSchemas::PayloadSchemas(NsysSession& session) {
  static constexpr std::array<std::string_view, 6> kColumns{"domainId", "schemaId", "idx", "type",
                                                            "name", "offset"};
  Rows rows(session.database, "NVTX_PAYLOAD_SCHEMA_ENTRIES", kColumns);
  std::map<Key, std::vector<Entry>> found;
  std::size_t entries = 0;
  while (rows.next() && ++entries <= kMaxEntries) {
    const auto schema = rows.integer(1);
    if (!schema) continue;
    found[{*schema, rows.integer(0).value_or(0)}].push_back(
        {rows.integer(2).value_or(0), rows.integer(3).value_or(0), rows.integer(5),
         field_named(rows.text(4).value_or(""))});
  }
  session.finish(rows);
  for (auto& [key, list] : found) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Entry& a, const Entry& b) { return a.index < b.index; });
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

std::optional<PayloadFields> PayloadSchemas::decode(std::string_view bytes,
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

}  // namespace bubblesim::traces::nsys
