// Any bytes as a .btr file, twice: as they are, and with every checksum put right, so that
// mutations reach what lies behind the checksums. Reading must not crash, and no id of what is
// read may point nowhere.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "tests/unit/traces/format/valid_ids.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/trace_reader.hpp"

namespace {

namespace format = bubblesim::traces::format;
using Bytes = std::vector<std::uint8_t>;

void put_crc(Bytes& bytes, std::size_t place, std::span<const std::uint8_t> of) {
  const std::uint32_t crc = format::crc32_of(of);
  std::memcpy(bytes.data() + place, &crc, sizeof(crc));
}

/// Rights the checksums of the file header and of whatever begins with a chunk's magic.
void repair(Bytes& bytes) {
  if (bytes.size() < format::kFileHeaderBytes) return;
  std::copy(format::kFileMagic.begin(), format::kFileMagic.end(), bytes.begin());
  put_crc(bytes, 12, std::span(bytes).first(12));
  auto place = bytes.begin() + format::kFileHeaderBytes;
  for (;;) {
    place = std::search(place, bytes.end(), format::kChunkMagic.begin(), format::kChunkMagic.end());
    const auto at = static_cast<std::size_t>(place - bytes.begin());
    if (bytes.size() - at < format::kChunkHeaderBytes) return;
    std::uint32_t stored = 0;
    std::memcpy(&stored, bytes.data() + at + 20, sizeof(stored));
    const std::size_t left = bytes.size() - at - format::kChunkHeaderBytes;
    const auto payload = std::span(bytes).subspan(at + format::kChunkHeaderBytes,
                                                  std::min<std::size_t>(stored, left));
    put_crc(bytes, at + 28, payload);
    put_crc(bytes, at + 40, std::span(bytes).subspan(at, 40));
    place += format::kChunkHeaderBytes;
  }
}

void read(const Bytes& bytes) {
  const auto outcome = format::read_job_bytes(bytes, "fuzz.btr");
  if (!outcome) {
    if (outcome.error().message.empty()) std::abort();
  } else if (!format::testing::ids_are_valid(outcome->job)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, data + size);
  read(bytes);
  repair(bytes);
  read(bytes);
  return 0;
}
