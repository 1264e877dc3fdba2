// ISA-L's inflate. It unpacks up to 64 KiB into a buffer of its own before it writes to the
// output, and forgets that text when it meets damage: it is handed on here.
//
// The header is read by a call of its own: the one inside isal_inflate() (2.30) forgets which
// optional fields follow when the input is cut inside a header.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "sim/base/gzip_inflater.hpp"

namespace bubblesim {
namespace {

/// Flags of the header that the format reserves: must be zero.
constexpr std::uint32_t kReservedFlags = 0xe0;

std::uint32_t isal_size(std::size_t size) {
  // Half of the type's range: ISA-L adds a few bytes to it.
  constexpr std::size_t kLimit = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::uint32_t>(std::min(size, kLimit));
}

class IsalInflater final : public GzipInflater {
 public:
  /// Tables of codes start clear, so that damage ends alike in every run; the rest of 85 KiB is
  /// written before it is read, and small files never touch most of it.
  IsalInflater() {
    state_.lit_huff_code = {};
    state_.dist_huff_code = {};
  }

  void start_member() override {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP_NO_HDR_VER;  // the header is read here, the trailer there
    header_ = {};
    isal_gzip_header_init(&header_);
    in_header_ = true;
    damaged_ = false;
  }

  Step step(std::string_view input, std::span<char> output) override {
    if (damaged_) return hand_on({}, output);
    const std::uint32_t given = isal_size(input.size());
    // ISA-L's interface is not const; it writes to the output only.
    state_.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(input.data()));
    state_.avail_in = given;
    Step step;
    if (in_header_) step.status = read_header();
    if (step.status == Status::kOpen && !in_header_) step = inflate(output);
    step.taken = given - state_.avail_in;
    return damaged_ ? hand_on(step, output) : step;
  }

 private:
  Status read_header() {
    const int code = isal_read_gzip_header(&state_, &header_);
    if (code == ISAL_END_INPUT) return Status::kOpen;
    if (code != ISAL_DECOMP_OK || (header_.flags & kReservedFlags) != 0) return Status::kDamaged;
    in_header_ = false;
    return Status::kOpen;
  }

  Step inflate(std::span<char> output) {
    const std::uint32_t room = isal_size(output.size());
    state_.next_out = reinterpret_cast<std::uint8_t*>(output.data());
    state_.avail_out = room;
    damaged_ = isal_inflate(&state_) != ISAL_DECOMP_OK;
    const bool ended = state_.block_state == ISAL_BLOCK_FINISH;
    return {0, room - state_.avail_out, ended ? Status::kMemberEnd : Status::kOpen};
  }

  /// After damage: what was unpacked before it and did not fit, then the damage.
  Step hand_on(Step step, std::span<char> output) {
    const auto room = output.subspan(step.made);
    const auto held = static_cast<std::size_t>(
        std::max(0, state_.tmp_out_valid - state_.tmp_out_processed));
    const std::size_t count = std::min(room.size(), held);
    if (count > 0) {
      std::memcpy(room.data(), state_.tmp_out_buffer + state_.tmp_out_processed, count);
    }
    state_.tmp_out_processed += static_cast<std::int32_t>(count);
    step.made += count;
    step.status = count < held ? Status::kOpen : Status::kDamaged;
    return step;
  }

  inflate_state state_;
  isal_gzip_header header_;
  bool in_header_ = true;
  bool damaged_ = false;  ///< met by isal_inflate(); text before it may still be held
};

}  // namespace

std::unique_ptr<GzipInflater> make_isal_inflater() { return std::make_unique<IsalInflater>(); }

}  // namespace bubblesim
