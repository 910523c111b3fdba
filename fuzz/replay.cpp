// Takes libFuzzer's place where it is not wanted: feeds each file in the given folders to a target, as an ordinary
// test. usage: fuzz_replay TARGET FOLDER…
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

using Target = int(const std::uint8_t* data, std::size_t size);

// VITRAIL_FUZZ_TARGETS is TARGET(safetensors) TARGET(config) …; each target's function is called after it.
#define TARGET(name) extern "C" Target fuzz_##name;
VITRAIL_FUZZ_TARGETS
#undef TARGET

namespace {

Target* find(std::string_view wanted) {
#define TARGET(name)     \
  if (wanted == #name) { \
    return &fuzz_##name; \
  }
  VITRAIL_FUZZ_TARGETS
#undef TARGET
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Target* target = argc > 1 ? find(argv[1]) : nullptr;
  if (target == nullptr || argc < 3) {
    std::fprintf(stderr, "usage: fuzz_replay TARGET FOLDER…\n");
    return 2;
  }
  std::size_t count = 0;
  for (int i = 2; i < argc; ++i) {
    std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(argv[i]), {});
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
      try {
        target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
        return 1;
      }
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
