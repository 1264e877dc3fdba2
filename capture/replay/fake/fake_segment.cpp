#include "capture/replay/fake/fake_segment.hpp"

#include <memory>
#include <new>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::capture {
namespace {

// "bubblesim fake" as bytes, and a version: a segment with other bytes is refused.
constexpr std::uint64_t kMagic = 0x62736d2d66616b33;
constexpr std::size_t kLine = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::size_t part_size(const FakeJobSize& job) {
  return aligned(sizeof(FakeJobPart)) + aligned(job.streams * sizeof(FakeStream)) +
         aligned(job.ops * sizeof(FakeOp));
}

std::size_t whole_size(const std::vector<FakeJobSize>& jobs) {
  std::size_t bytes = aligned(sizeof(FakeHeader));
  for (const FakeJobSize& job : jobs) bytes += part_size(job);
  return bytes;
}

template <class T>
T* at(void* base, std::size_t bytes) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + bytes);
}

void make_part(void* place, const FakeJobSize& size, HostClock& clock) {
  auto* part = new (place) FakeJobPart;
  part->client = size.client;
  part->op_count = size.ops;
  part->stream_count = size.streams;
  part->streams_at = aligned(sizeof(FakeJobPart));
  part->ops_at = part->streams_at + aligned(size.streams * sizeof(FakeStream));
  for (Bell* const bell : {&part->room, &part->news, &part->end}) bell->id = clock.bell_id();
  std::uninitialized_default_construct_n(part->streams().data(), size.streams);
  std::uninitialized_default_construct_n(part->ops().data(), size.ops);
}

}  // namespace

std::span<FakeStream> FakeJobPart::streams() {
  return {at<FakeStream>(this, streams_at), stream_count};
}
std::span<FakeOp> FakeJobPart::ops() { return {at<FakeOp>(this, ops_at), op_count}; }

Result<std::unique_ptr<FakeSegment>> FakeSegment::create(HostClock& clock,
                                                         const std::vector<FakeJobSize>& jobs) {
  BUBBLESIM_CHECK(jobs.size() <= kMostGateClients, "more jobs than a gate has places");
  const std::size_t bytes = whole_size(jobs);
  BUBBLESIM_ASSIGN_OR_RETURN(auto memory, SharedSegment::make("bubblesim.fake", bytes));
  auto* header = new (memory->address()) FakeHeader;
  header->bytes = bytes;
  header->device = this_process();
  header->to_device.id = clock.bell_id();
  std::size_t place = aligned(sizeof(FakeHeader));
  for (const FakeJobSize& job : jobs) {
    make_part(at<std::byte>(header, place), job, clock);
    header->job_at[header->job_count++] = place;
    place += part_size(job);
  }
  header->magic = kMagic;
  return std::unique_ptr<FakeSegment>(new FakeSegment(std::move(memory)));
}

Result<std::unique_ptr<FakeSegment>> FakeSegment::open(const std::string& name) {
  constexpr const char* kWhat = "fake GPU";
  BUBBLESIM_ASSIGN_OR_RETURN(auto memory, SharedSegment::open(name, sizeof(FakeHeader), kWhat));
  const auto& header = *static_cast<const FakeHeader*>(memory->address());
  if (header.magic != kMagic) return fail("\"" + name + "\" is no fake GPU of this version");
  BUBBLESIM_ASSIGN_OR_RETURN(memory, SharedSegment::open(name, header.bytes, kWhat));
  return std::unique_ptr<FakeSegment>(new FakeSegment(std::move(memory)));
}

FakeHeader& FakeSegment::header() const {
  return *static_cast<FakeHeader*>(memory_->address());
}

FakeJobPart& FakeSegment::job(std::size_t index) const {
  return *at<FakeJobPart>(memory_->address(), header().job_at[index]);
}

FakeJobPart* FakeSegment::find(ClientId client) const {
  for (std::uint32_t i = 0; i < header().job_count; ++i) {
    if (job(i).client == client) return &job(i);
  }
  return nullptr;
}

}  // namespace bubblesim::capture
