// Small .tar files for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace vitrail::test {

// Names longer than 100 bytes are written GNU tar's way, as a member of type L before the file.
class TarWriter {
 public:
  void add(const std::string& name, std::span<const std::uint8_t> data) {
    const std::string bytes(data.begin(), data.end());
    if (name.size() > 100) {
      member("././@LongLink", 'L', name + '\0');
    }
    member(name.substr(0, 100), '0', bytes);
  }
  void add_file(const std::string& name, const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    add(name, bytes);
  }
  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << archive_ << std::string(1024, '\0');
  }

 private:
  void member(const std::string& name, char type, const std::string& data) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 7, "0000644");
    header.replace(124, 11, fmt::format("{:011o}", data.size()));
    header.replace(136, 11, "00000000000");
    header.replace(148, 8, "        ");
    header[156] = type;
    header.replace(257, 7, "ustar  ");
    const int sum = std::accumulate(header.begin(), header.end(), 0,
                                    [](int s, char c) { return s + static_cast<unsigned char>(c); });
    header.replace(148, 6, fmt::format("{:06o}", sum));
    header[154] = '\0';
    archive_ += header + data + std::string((512 - data.size() % 512) % 512, '\0');
  }
  std::string archive_;
};

}  // namespace vitrail::test
