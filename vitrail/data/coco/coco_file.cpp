#include "vitrail/data/coco/coco_file.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "vitrail/data/sources/sources.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

fs::path coco_image(const fs::path& file, const std::string& name, const std::string& source, bool skip_broken) {
  const fs::path folder = file.parent_path();
  std::vector<fs::path> places = {folder, folder / "images"};
  const std::string stem = file.stem().string();
  if (const std::size_t underscore = stem.find('_'); underscore != std::string::npos && underscore > 0) {
    const fs::path beside = fs::absolute(folder).lexically_normal().parent_path();
    places.push_back(beside / stem.substr(underscore + 1));
    places.push_back(beside / "images" / stem.substr(underscore + 1));
  }
  std::error_code error;
  const auto found =
      std::ranges::find_if(places, [&](const fs::path& place) { return fs::exists(place / name, error); });
  const fs::path& likely = places[std::min<std::size_t>(2, places.size() - 1)];
  check(skip_broken || found != places.end(),
        "{}: the image '{}' does not exist, neither beside the file nor in '{}' {}", source, name, likely.string(),
        missing_image_remedy);
  return (found != places.end() ? *found : likely) / name;
}

}  // namespace

std::optional<std::int64_t> id_in_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::size_t begin = stem.size();
  while (begin > 0 && stem.size() - begin < 18 && stem[begin - 1] >= '0' && stem[begin - 1] <= '9') {
    --begin;
  }
  return begin == stem.size() ? std::nullopt : std::optional(std::stoll(stem.substr(begin)));
}

std::map<std::string, std::int64_t> ids_in_names(const std::vector<std::string>& names) {
  std::map<std::string, std::int64_t> ids;
  std::set<std::int64_t> different;
  for (const std::string& name : names) {
    const std::optional<std::int64_t> id = id_in_name(name);
    if (!id || (ids.emplace(name, *id).second && !different.insert(*id).second)) {
      return {};
    }
  }
  return ids;
}

CocoFile::CocoFile(const fs::path& path, const std::vector<std::string>& lists, const std::string& what,
                   bool skip_broken)
    : path_(path), json_(io::read_json(path)), skip_broken_(skip_broken) {
  io::Fields fields(json_, path.string());
  for (const std::string& list : lists) {
    check(fields.kind(list) == io::Kind::list, "{}: there is no list '{}', as {} in COCO's layout have it",
          path.string(), list, what);
  }
}

void CocoFile::read(const std::string& list, const std::function<void(io::Fields&)>& read) const {
  std::size_t number = 0;
  for (const nlohmann::json& item : json_.at(list)) {
    io::Fields object(item, fmt::format("{}: '{}' {}", path_.string(), list, number++));
    read(object);
  }
}

CocoPlaces CocoFile::read_with_ids(const std::string& list, const std::function<void(io::Fields&)>& read,
                                   bool may_miss) const {
  CocoPlaces places;
  std::size_t place = 0;
  this->read(list, [&](io::Fields& object) {
    if (!may_miss || object.kind("id") != io::Kind::absent) {
      const auto id = object.get<std::int64_t>("id");
      check(places.emplace(id, place).second, "{}: the id {} is there twice", object.source(), id);
    }
    read(object);
    ++place;
  });
  return places;
}

CocoPlaces CocoFile::read_images(
    const std::function<void(io::Fields&, std::int64_t, const std::string&, const fs::path&)>& read) const {
  std::unordered_map<std::string, std::int64_t> ids;
  return read_with_ids("images", [&](io::Fields& object) {
    const auto name = object.get<std::string>("file_name");
    const auto [first, is_new] = ids.emplace(name, object.get<std::int64_t>("id"));
    check(is_new, "{}: the file '{}' is that of the image {} too", object.source(), name, first->second);
    read(object, object.get<std::int64_t>("id"), name, coco_image(path_, name, object.source(), skip_broken_));
  });
}

std::size_t CocoFile::image_of(io::Fields& annotation, const CocoPlaces& images) {
  const auto id = annotation.get<std::int64_t>("image_id");
  const auto place = images.find(id);
  check(place != images.end(), "{}: there is no image with the id {}", annotation.source(), id);
  return place->second;
}

}  // namespace vitrail::data
