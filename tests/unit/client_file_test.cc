// Files and sources: outputs that are whole or absent, maps that can be dropped, Fortran order read right.
#include "client/cpp/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/source.h"
#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using ::testing::HasSubstr;
using testing::Pattern;
using testing::ReadFile;
using testing::Spec;
using testing::TempDir;
using testing::WriteFile;

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(OutputFile, AppearsWholeOnCommit) {
  const TempDir dir;
  auto file = OutputFile::Create(dir.File("out"), 6);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE(file->Write(3, AsBytes("def")).ok());
  ASSERT_TRUE(file->Write(0, AsBytes("abc")).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.File("out")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(dir.File("out")), "abcdef");
  EXPECT_EQ(dir.Count(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(dir.File("out").c_str(), &info), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST(OutputFile, LeavesNothingWithoutCommit) {
  const TempDir dir;
  WriteFile(dir.File("out"), "old");
  {
    auto file = OutputFile::Create(dir.File("out"), 1000);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write(0, AsBytes("new")).ok());
    auto moved = std::move(*file);
  }
  EXPECT_EQ(ReadFile(dir.File("out")), "old");
  EXPECT_EQ(dir.Count(), 1u);
}

TEST(OutputFile, ReplacesAnExistingFileAndFollowsLinks) {
  const TempDir dir;
  WriteFile(dir.File("real"), "old");
  std::filesystem::create_symlink("real", dir.File("link"));
  auto file = OutputFile::Create(dir.File("link"), 3);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write(0, AsBytes("new")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(dir.File("real")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("link")));
}

TEST(OutputFile, RefusesWhatItCannotReplace) {
  const TempDir dir;
  const auto refusal = [](const std::string& path) {
    const auto file = OutputFile::Create(path, 1);
    return file ? "accepted" : std::string(file.error().message());
  };
  EXPECT_THAT(refusal(dir.File("no/such/dir")), HasSubstr("No such file or directory"));
  EXPECT_THAT(refusal(dir.path()), HasSubstr("is a directory"));
  EXPECT_THAT(refusal(dir.File("new/")), HasSubstr("No such file"));
  EXPECT_EQ(refusal("/dev/null"), "/dev/null: is not a regular file");
  EXPECT_THAT(refusal(""), ::testing::Ne("accepted"));
  std::filesystem::create_symlink("nowhere", dir.File("dangling"));
  EXPECT_THAT(refusal(dir.File("dangling")), HasSubstr("is a link to nowhere"));
  EXPECT_THAT(refusal("/proc/out"), ::testing::Ne("accepted"));
  EXPECT_EQ(dir.Count(), 1u);
}

TEST(MappedFile, SaysWhatIsWrong) {
  const TempDir dir;
  EXPECT_EQ(MappedFile::Open(dir.File("none")).error().code(), Code::kNotFound);
  EXPECT_THAT(std::string(MappedFile::Open(dir.path()).error().message()), HasSubstr("is a directory"));
  EXPECT_THAT(std::string(MappedFile::Open("/dev/null").error().message()), HasSubstr("not a regular file"));
  WriteFile(dir.File("empty"), "");
  ASSERT_TRUE(MappedFile::Open(dir.File("empty")));
  EXPECT_TRUE((*MappedFile::Open(dir.File("empty")))->bytes().empty());
}

/// Pages of the mapping that this process has in its tables, from /proc/self/pagemap.
size_t MappedPages(std::span<const uint8_t> bytes) {
  const int fd = ::open("/proc/self/pagemap", O_RDONLY);
  const auto first = reinterpret_cast<uintptr_t>(bytes.data()) / 4096;
  std::vector<uint64_t> entries(bytes.size() / 4096);
  const ssize_t got = ::pread(fd, entries.data(), entries.size() * 8, static_cast<off_t>(first * 8));
  ::close(fd);
  EXPECT_EQ(got, static_cast<ssize_t>(entries.size() * 8));
  size_t present = 0;
  for (const uint64_t entry : entries) present += entry >> 63;
  return present;
}

TEST(MappedFile, DropsPagesAndKeepsBytes) {
  const TempDir dir;
  const std::string content = Pattern(4 << 20);
  WriteFile(dir.File("big"), content);
  const auto file = MappedFile::Open(dir.File("big")).value();
  file->AdviseSequential();
  ASSERT_EQ(std::memcmp(file->bytes().data(), content.data(), content.size()), 0);
  const size_t before = MappedPages(file->bytes());
  ASSERT_EQ(before, 1024u);
  file->Drop(4096, (2 << 20) + 100);
  EXPECT_LE(MappedPages(file->bytes()), before - 500);
  file->Drop(0, UINT64_MAX);
  file->Drop(UINT64_MAX, 1);
  EXPECT_EQ(std::memcmp(file->bytes().data(), content.data(), content.size()), 0);
}

/// The array in C order, element by element: the slow and obvious way.
std::string SlowCOrder(const ArraySpec& spec, const std::string& fortran) {
  const auto size = static_cast<size_t>(SizeOf(spec.dtype));
  const int rank = spec.shape.rank();
  std::string out(fortran.size(), '\0');
  for (int64_t i = 0; i < spec.shape.elements(); ++i) {
    int64_t rest = i, offset = 0;
    std::array<int64_t, kMaxRank> index;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = rest % spec.shape.dim(axis);
      rest /= spec.shape.dim(axis);
    }
    for (int axis = rank - 1; axis >= 0; --axis)
      offset = offset * spec.shape.dim(axis) + index[static_cast<size_t>(axis)];
    std::memcpy(out.data() + static_cast<size_t>(i) * size,
                fortran.data() + static_cast<size_t>(offset) * size, size);
  }
  return out;
}

TEST(FortranOrder, IsReadAsCOrderWhateverThePieces) {
  const std::vector<std::vector<int64_t>> shapes = {
      {5}, {3, 7}, {130, 70}, {1, 9}, {9, 1, 4}, {2, 3, 4}, {65, 3, 2, 5}, {2, 2, 2, 2, 2}, {1, 1}};
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64, DType::kC128}) {
    for (const auto& dims : shapes) {
      const ArraySpec spec = Spec(dtype, dims);
      const std::string fortran = Pattern(static_cast<size_t>(spec.bytes()), dims.size());
      const std::string expected = SlowCOrder(spec, fortran);
      const auto* in = reinterpret_cast<const uint8_t*>(fortran.data());
      const int64_t n = spec.shape.elements();
      for (const int64_t step : {int64_t{1}, int64_t{3}, int64_t{64}, int64_t{1000}, n}) {
        if (n / step > 2000) continue;
        std::string out(fortran.size(), '\0');
        for (int64_t i = 0; i < n; i += step)
          FortranToC(spec, in, i, std::min(n, i + step),
                     reinterpret_cast<uint8_t*>(out.data()) + i * SizeOf(dtype));
        EXPECT_EQ(out, expected) << Name(dtype) << spec.shape.ToString() << " by " << step;
      }
    }
  }
}

TEST(ArraySource, ReadsAFortranFileOverSeveralWindows) {
  const TempDir dir;
  const ArraySpec spec = Spec(DType::kF32, {3001, 3000});  // 36 MB: over one window of 32 MiB
  const std::string fortran = Pattern(static_cast<size_t>(spec.bytes()));
  WriteFile(
      dir.File("f.npy"),
      testing::NpyBytes("{'descr': '<f4', 'fortran_order': True, 'shape': (3001, 3000), }", fortran, 2));
  const auto source = ArraySource::OpenNpy(dir.File("f.npy"));
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_TRUE(source->fortran_order());
  EXPECT_EQ(source->spec(), spec);
  SourceReader reader(*source);
  std::string out;
  std::vector<SourceSlice> held;  // slices stay good while later windows are made
  for (uint64_t at = 0; at < fortran.size(); at += 1 << 20) {
    held.push_back(reader.Slice(at, std::min<uint64_t>(1 << 20, fortran.size() - at)));
    reader.Done(at, 1 << 20);
  }
  for (const auto& slice : held)
    out.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  EXPECT_EQ(out, SlowCOrder(spec, fortran));
}

TEST(ArraySource, ReadsACOrderFileWithoutCopying) {
  const TempDir dir;
  const ArraySpec spec = Spec(DType::kU8, {40 << 20});
  const std::string data = Pattern(static_cast<size_t>(spec.bytes()));
  testing::WriteNpy(dir.File("c.npy"), spec, data.data());
  const auto source = ArraySource::OpenNpy(dir.File("c.npy")).value();
  SourceReader reader(source);
  const auto first = reader.Slice(0, 100);
  EXPECT_EQ(reader.Slice(1000, 1).bytes.data(), first.bytes.data() + 1000);
  EXPECT_TRUE(first.owner);
  const auto all = reader.Slice(0, data.size());
  EXPECT_EQ(std::memcmp(all.bytes.data(), data.data(), data.size()), 0);
  const std::span<const uint8_t> pages(all.bytes.data() - 128, data.size());
  ASSERT_GT(MappedPages(pages), 10000u);
  for (uint64_t at = 0; at <= data.size(); at += 1 << 20) reader.Done(at, 1 << 20);
  EXPECT_LT(MappedPages(pages), 4097u + 32);  // what lies behind the last drop
  EXPECT_EQ(std::memcmp(all.bytes.data(), data.data(), data.size()), 0);
}

TEST(ArraySource, StoredFormOfFortranIsTheReversedArray) {
  const TempDir dir;
  WriteFile(dir.File("f.npy"),
            testing::NpyBytes("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", "abcdef"));
  const auto source = ArraySource::OpenNpy(dir.File("f.npy")).value();
  const auto stored = source.AsStored();
  EXPECT_FALSE(stored.fortran_order());
  EXPECT_EQ(stored.spec(), Spec(DType::kI8, {3, 2}));
  EXPECT_EQ(SourceReader(stored).Slice(0, 6).bytes[1], 'b');
  EXPECT_EQ(SourceReader(source).Slice(0, 6).bytes[1], 'c');
  // One long axis: both orders are the same bytes.
  WriteFile(dir.File("v.npy"),
            testing::NpyBytes("{'descr': '|i1', 'fortran_order': True, 'shape': (1, 6), }", "abcdef"));
  EXPECT_FALSE(ArraySource::OpenNpy(dir.File("v.npy")).value().fortran_order());
}

}  // namespace
}  // namespace tilewire::client
