#include "vitrail/cli/see/find_by_path.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

// How many parts two paths share, from their ends.
std::size_t common_tail(const fs::path& a, const fs::path& b) {
  const std::vector<fs::path> parts_a(a.begin(), a.end());
  const std::vector<fs::path> parts_b(b.begin(), b.end());
  const auto differ = std::mismatch(parts_a.rbegin(), parts_a.rend(), parts_b.rbegin(), parts_b.rend());
  return static_cast<std::size_t>(differ.first - parts_a.rbegin());
}

}  // namespace

std::map<std::string, std::size_t> find_by_path(const std::vector<NamedImage>& images,
                                                const std::vector<std::string>& named,
                                                std::vector<std::string>& unclear) {
  std::multimap<std::string, std::string> by_file_name;
  std::set<std::string> paths;  // an image may be given twice
  for (const NamedImage& image : images) {
    if (paths.insert(image.name).second) {
      by_file_name.emplace(fs::path(image.name).filename().string(), image.name);
    }
  }
  struct Claim {
    std::size_t shared = 0;
    std::size_t index = 0;
    bool alone = true;
  };
  std::map<std::string, Claim> claims;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const fs::path path = fs::path(named[i]).lexically_normal();
    std::vector<std::string> best;
    std::size_t most = 0;
    const auto [begin, end] = by_file_name.equal_range(path.filename().string());
    for (auto image = begin; image != end; ++image) {
      const std::size_t shared = common_tail(fs::absolute(image->second).lexically_normal(), path);
      if (shared > most) {
        best.clear();
        most = shared;
      }
      if (shared == most) {
        best.push_back(image->second);
      }
    }
    if (best.size() > 1) {
      unclear.push_back(named[i]);
    } else if (!best.empty()) {
      Claim& claim = claims[best.front()];
      if (most > claim.shared) {
        claim = {most, i};
      } else if (most == claim.shared) {
        claim.alone = false;
      }
    }
  }
  std::map<std::string, std::size_t> found;
  for (const auto& [path, claim] : claims) {
    if (claim.alone) {
      found.emplace(path, claim.index);
    } else {
      unclear.push_back(named[claim.index]);
    }
  }
  return found;
}

}  // namespace vitrail::cli
