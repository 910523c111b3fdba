#include "vitrail/io/tensor_files.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/torch_file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {

StoredTensors open_tensors(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  // Behind the length of its header, a safetensors file has a brace, a ZIP archive 0, and a file of torch.save 'F'.
  const bool has_header = file->bytes().size() > 8 && file->bytes()[8] == '{';
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  check(!text.starts_with("version https://git-lfs.github.com/"),
        "{}: the pointer of Git LFS to a file that is not here: `git lfs pull` fetches it", path.string());
  const bool is_of_torch = !has_header && is_torch_file(file->bytes());
  check(has_header || is_of_torch || path.extension() == ".safetensors",
        "{}: not a safetensors file, nor one of torch.save", path.string());
  StoredTensors result = is_of_torch ? parse_torch_file(file->bytes(), file, path.string())
                                     : Safetensors::parse(file->bytes(), file, path.string());
  result.owned_by_file(file);
  return result;
}

StoredTensors open_shards(const std::filesystem::path& index) {
  const nlohmann::json json = read_json(index);
  Fields fields(json, index.string());
  const nlohmann::json& files = fields.raw("weight_map");
  check(files.is_object() && !files.empty(), "{}: 'weight_map' must name a file for each tensor", index.string());
  std::map<std::string, StoredTensors> shards;
  StoredTensors result(index.string());
  for (const auto& [name, value] : files.items()) {
    check(value.is_string(), "{}: 'weight_map' must name the file of the tensor '{}'", index.string(), shown(name));
    const auto file = value.get<std::string>();
    auto shard = shards.find(file);
    if (shard == shards.end()) {
      const std::filesystem::path path = index.parent_path() / file;
      check(!file.empty() && path.filename() == file && file != "..", "{}: '{}' is not the name of a file beside it",
            index.string(), shown(file));
      check(std::filesystem::exists(path), "{}: the file '{}' is missing, which has the tensor '{}'", index.string(),
            file, shown(name));
      shard = shards.emplace(file, open_tensors(path)).first;
    }
    check(shard->second.contains(name), "{}: the tensor '{}' should be in '{}', which does not have it", index.string(),
          shown(name), file);
    result.add(name, shard->second.find(name));
  }
  return result;
}

}  // namespace vitrail::io
