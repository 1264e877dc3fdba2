// Payloads of NVTX ranges: named numbers, as bytes by a schema or as JSON text.
//
// Bytes are a head of 32 (how many payloads, schema, size of the payload, end; 8 each) and the
// payload, as Nsight Systems of 2024 to 2026 write them. Fields are found by their names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/nsys_session.hpp"

namespace bubblesim::traces::nsys {

/// The fields of NCCL's payloads that matter here; nothing: the payload lacks it.
struct PayloadFields {
  std::optional<std::uint64_t> communicator;
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> ranks;
  std::optional<std::uint64_t> rank;
  std::optional<std::uint64_t> device;
  std::optional<std::uint64_t> peer;  ///< of a send or a receive, in the communicator
};

class PayloadSchemas {
 public:
  explicit PayloadSchemas(NsysSession& session);
  /// Nothing: no schema of NCCL's, or bytes that do not fit it.
  [[nodiscard]] std::optional<PayloadFields> decode(std::string_view bytes,
                                                  std::int64_t domain) const;

 private:
  struct Field {
    std::optional<std::uint64_t> PayloadFields::*what = nullptr;
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< schema, domain
  std::map<Key, std::vector<Field>> schemas_;
};

/// The fields of a text `{"NCCL communicator ID": 1234, ...}`; numbers may be in quotes and have
/// commas.
[[nodiscard]] std::optional<PayloadFields> payload_of_json(std::string_view text);

}  // namespace bubblesim::traces::nsys
