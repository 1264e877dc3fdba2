// The shared object as a loader sees it: what it shows. What it needs:
// tests/unit/capture/live/library_test.cpp.
#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace bubblesim::capture {
namespace {

using ::testing::AnyOf, ::testing::Contains, ::testing::Each, ::testing::StartsWith;

/// The sections of a 64-bit ELF file that say how it is loaded.
class ElfFile {
 public:
  explicit ElfFile(const char* path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  [[nodiscard]] bool stays_loaded() const {
    for (const Elf64_Dyn& entry : table<Elf64_Dyn>(SHT_DYNAMIC)) {
      if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_NODELETE) != 0;
    }
    return false;
  }
  [[nodiscard]] std::vector<std::string> shown() const {
    std::vector<std::string> names;
    for (const Elf64_Sym& symbol : table<Elf64_Sym>(SHT_DYNSYM)) {
      if (symbol.st_shndx != SHN_UNDEF) names.push_back(text(SHT_DYNSYM, symbol.st_name));
    }
    return names;
  }

 private:
  template <class T>
  [[nodiscard]] std::vector<T> read(std::size_t offset, std::size_t count) const {
    std::vector<T> items(count);
    if (offset + count * sizeof(T) <= bytes_.size()) {
      std::memcpy(items.data(), bytes_.data() + offset, count * sizeof(T));
    }
    return items;
  }
  [[nodiscard]] std::vector<Elf64_Shdr> sections() const {
    const auto header = read<Elf64_Ehdr>(0, 1).front();
    return read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  }
  [[nodiscard]] Elf64_Shdr section(Elf64_Word type) const {
    for (const Elf64_Shdr& section : sections()) {
      if (section.sh_type == type) return section;
    }
    return {};
  }
  template <class T>
  [[nodiscard]] std::vector<T> table(Elf64_Word type) const {
    const Elf64_Shdr found = section(type);
    return read<T>(found.sh_offset, found.sh_size / sizeof(T));
  }
  [[nodiscard]] std::string text(Elf64_Word of, std::size_t offset) const {
    return bytes_.data() + sections()[section(of).sh_link].sh_offset + offset;
  }

  std::vector<char> bytes_;
};

TEST(Library, ShowsItsEntryPointsAndNothingElse) {
  const auto shown = ElfFile(CAPTURE_LIBRARY).shown();
  EXPECT_THAT(shown, Each(AnyOf("InitializeInjection", StartsWith("InitializeInjectionNvtx"),
                                StartsWith("ncclProfiler_v"))));
  for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2", "ncclProfiler_v4",
                           "ncclProfiler_v5"}) {
    EXPECT_THAT(shown, Contains(name));
  }
}

TEST(Library, CannotBeUnloaded) { EXPECT_TRUE(ElfFile(CAPTURE_LIBRARY).stays_loaded()); }

}  // namespace
}  // namespace bubblesim::capture
