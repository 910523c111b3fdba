#include "vitrail/io/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/pickle.h"
#include "vitrail/io/wording.h"
#include "vitrail/io/zip.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

using Bytes = std::span<const std::uint8_t>;

// The classes of storages, and safetensors' names for their dtypes.
constexpr std::pair<std::string_view, std::string_view> storage_classes[] = {
    {"torch.FloatStorage", "F32"},  {"torch.HalfStorage", "F16"},         {"torch.BFloat16Storage", "BF16"},
    {"torch.DoubleStorage", "F64"}, {"torch.LongStorage", "I64"},         {"torch.IntStorage", "I32"},
    {"torch.ShortStorage", "I16"},  {"torch.CharStorage", "I8"},          {"torch.ByteStorage", "U8"},
    {"torch.BoolStorage", "BOOL"},  {"torch.ComplexFloatStorage", "C64"},
};

constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor";
constexpr std::string_view rebuild_tensor_v2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view rebuild_parameter = "torch._utils._rebuild_parameter";

// What may be named beside the storages: the functions above, and what checkpoints of a training have next to their
// weights, which is passed over.
constexpr std::string_view other_globals[] = {
    rebuild_tensor,      rebuild_tensor_v2, rebuild_parameter, "collections.OrderedDict",
    "torch.Size",        "torch.device",    "torch.float32",   "torch.float64",
    "torch.float16",     "torch.bfloat16",  "torch.uint8",     "torch.int8",
    "torch.int16",       "torch.int32",     "torch.int64",     "torch.bool",
    "argparse.Namespace"};

constexpr auto allowed_globals = [] {
  std::array<std::string_view, std::size(storage_classes) + std::size(other_globals)> names;
  auto next = std::copy(std::begin(other_globals), std::end(other_globals), names.begin());
  for (const auto& [name, dtype] : storage_classes) {
    *next++ = name;
  }
  return names;
}();

// A tensor that repeats elements may have so many more of them than its storage.
constexpr std::int64_t most_repeated = 1 << 20;

// A file of torch.save in either format: the pickle of the value, and the bytes of the storages by their keys.
struct TorchFile {
  Pickle pickle;
  std::map<std::string, Bytes, std::less<>> storages;
};

// A storage as the pickle describes it.
struct StorageId {
  std::string_view dtype;
  std::string_view key;
  std::uint64_t numel = 0;
};

std::string_view described(PickleKind kind) {
  constexpr std::array<std::string_view, 11> names = {"None",     "a truth value", "a whole number", "a whole number",
                                                      "a number", "a text",        "a tuple",        "a list",
                                                      "a dict",   "a type",        "an object"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "a storage";
}

// The id of a storage: ("storage", its class, key, device, number of elements), in the older format with the place in
// another storage behind it.
StorageId storage_of(const PickleValue& value, const std::string& source) {
  const auto& items = value.items.at(0)->items;
  const auto is = [&](std::size_t i, PickleKind kind) { return items.size() > i && items[i]->kind == kind; };
  check(is(0, PickleKind::text) && is(1, PickleKind::global) && is(2, PickleKind::text) && is(4, PickleKind::integer) &&
            items[0]->text == "storage" && items[4]->integer >= 0,
        "{}: the pickle refers to something outside that is no storage", source);
  check(items.size() == 5 || is(5, PickleKind::none),
        "{}: the storage '{}' is a part of another one, which is not supported", source,
        as_utf8(shown(items[2]->text)));
  const auto* type = std::find_if(std::begin(storage_classes), std::end(storage_classes),
                                  [&](const auto& known) { return known.first == items[1]->text; });
  check(type != std::end(storage_classes), "{}: a storage cannot be a {}", source, items[1]->text);
  return {type->second, items[2]->text, static_cast<std::uint64_t>(items[4]->integer)};
}

std::uint64_t bytes_each(const StorageId& id) { return *stored_bits(id.dtype) / 8; }

// Reads sizes or strides.
std::vector<std::uint64_t> whole_numbers(const PickleValue& value, const std::string& name, const std::string& source) {
  std::vector<std::uint64_t> numbers;
  for (const PickleValue* item : value.items) {
    check(item->kind == PickleKind::integer && item->integer >= 0,
          "{}: the sizes and strides of the tensor '{}' must be whole numbers, and not negative", source, name);
    numbers.push_back(static_cast<std::uint64_t>(item->integer));
  }
  return numbers;
}

// Where the elements of a tensor end in its storage, counted from its first one; none if that overflows.
std::optional<std::uint64_t> extent(const Shape& shape, std::span<const std::uint64_t> strides) {
  if (shape.numel() == 0) {
    return 0;
  }
  std::uint64_t last = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    std::uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(shape[d] - 1), strides[static_cast<std::size_t>(d)], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  return last == UINT64_MAX ? std::nullopt : std::optional(last + 1);
}

// Makes tensors of the calls that a pickle has written down.
class Tensors {
 public:
  Tensors(const TorchFile& file, const std::shared_ptr<const void>& owner, const std::string& source)
      : file_(file), owner_(owner), source_(source) {}

  // The tensor that `value` stands for; none if it stands for something else.
  std::optional<StoredTensor> tensor(const PickleValue& value, const std::string& name) const {
    const PickleValue* call = &value;
    if (is_call_of(*call, rebuild_parameter)) {  // (data, requires_grad, hooks)
      const auto& arguments = call->items[1]->items;
      check(!arguments.empty(), "{}: the parameter '{}' has no data", source_, name);
      call = arguments[0];
    }
    if (!is_call_of(*call, rebuild_tensor_v2) && !is_call_of(*call, rebuild_tensor)) {
      return std::nullopt;
    }
    // (storage, offset, sizes, strides); then requires_grad and hooks, which mean nothing here.
    const auto& arguments = call->items[1]->items;
    check(arguments.size() >= 4 && arguments[0]->kind == PickleKind::persistent &&
              arguments[1]->kind == PickleKind::integer && arguments[1]->integer >= 0 &&
              arguments[2]->kind == PickleKind::tuple && arguments[3]->kind == PickleKind::tuple,
          "{}: the tensor '{}' is not made of a storage, an offset, sizes and strides", source_, name);
    const StorageId id = storage_of(*arguments[0], source_);
    const std::vector<std::uint64_t> strides = whole_numbers(*arguments[3], name, source_);
    const Shape shape =
        checked_shape(whole_numbers(*arguments[2], name, source_), *stored_bits(id.dtype), name, source_);
    check(strides.size() == static_cast<std::size_t>(shape.rank()), "{}: the tensor '{}' has {} sizes and {} strides",
          source_, name, shape.rank(), strides.size());
    return within(storage(id), id, static_cast<std::uint64_t>(arguments[1]->integer), shape, strides, name);
  }

 private:
  static bool is_call_of(const PickleValue& value, std::string_view function) {
    return value.kind == PickleKind::call && value.items[0]->text == function;
  }

  Bytes storage(const StorageId& id) const {
    const auto found = file_.storages.find(id.key);
    check(found != file_.storages.end(), "{}: the storage '{}' is missing", source_, as_utf8(shown(id.key)));
    check(id.numel <= found->second.size() / bytes_each(id),
          "{}: the storage '{}' should have {} of {}, but has {} bytes", source_, as_utf8(shown(id.key)),
          counted(static_cast<std::int64_t>(id.numel), "elements"), id.dtype, found->second.size());
    return found->second;
  }

  // The tensor at `offset` of a storage, after checking that it ends inside.
  StoredTensor within(Bytes bytes, const StorageId& id, std::uint64_t offset, const Shape& shape,
                      std::span<const std::uint64_t> strides, const std::string& name) const {
    const std::optional<std::uint64_t> length = extent(shape, strides);
    check(length && offset <= id.numel && *length <= id.numel - offset,
          "{}: the tensor '{}' of shape {} and strides [{}] from element {} on lies beyond its storage of {}", source_,
          name, shape, fmt::join(strides, ", "), offset, counted(static_cast<std::int64_t>(id.numel), "elements"));
    check(shape.numel() <= most_repeated || static_cast<std::uint64_t>(shape.numel()) <= id.numel,
          "{}: the tensor '{}' of shape {} repeats the {} of its storage too often", source_, name, shape,
          counted(static_cast<std::int64_t>(id.numel), "elements"));
    Shape steps = shape;
    for (int d = 0; d < shape.rank(); ++d) {
      steps[d] =
          shape.numel() == 0 || shape[d] == 1 ? 0 : static_cast<std::int64_t>(strides[static_cast<std::size_t>(d)]);
    }
    return {std::string(id.dtype), shape, steps, bytes.data() + offset * bytes_each(id), owner_};
  }

  const TorchFile& file_;
  const std::shared_ptr<const void>& owner_;
  const std::string& source_;
};

// The ZIP archive that PyTorch 1.6 and later write: PREFIX/data.pkl, PREFIX/data/KEY, PREFIX/byteorder.
TorchFile read_archive(Bytes bytes, const std::string& source) {
  const std::vector<ZipEntry> entries = read_zip(bytes, source);
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(entries, [&](const ZipEntry& entry) { return entry.name == name; });
  };
  const auto data = std::ranges::find_if(entries, [](const ZipEntry& entry) {
    return entry.name.ends_with("/data.pkl") && entry.name.find('/') == entry.name.rfind('/');
  });
  check(data != entries.end(), "{}: a ZIP archive without a data.pkl, which is not of torch.save", source);
  const std::string prefix = data->name.substr(0, data->name.find('/') + 1);
  check(named(prefix + "constants.pkl") == entries.end(),
        "{}: a program of torch.jit.save: save its weights with torch.save(model.state_dict(), …)", source);
  for (const ZipEntry& entry : entries) {
    check(!entry.compressed, "{}: '{}' is compressed in the ZIP archive, which torch.save never does", source,
          as_utf8(shown(entry.name)));
  }
  const auto order = named(prefix + "byteorder");
  check(order == entries.end() ||
            std::string_view(reinterpret_cast<const char*>(order->bytes.data()), order->bytes.size()) == "little",
        "{}: it was written on a machine with another order of bytes", source);
  TorchFile file{read_pickle(data->bytes, allowed_globals, source), {}};
  for (const ZipEntry& entry : entries) {
    if (entry.name.starts_with(prefix + "data/")) {
      const bool is_new = file.storages.try_emplace(entry.name.substr(prefix.size() + 5), entry.bytes).second;
      check(is_new, "{}: the ZIP archive has '{}' twice", source, as_utf8(shown(entry.name)));
    }
  }
  return file;
}

// The file of PyTorch before 1.6: pickles of a magic number, of the version 1001, of facts about the machine, of the
// value and of the storages' keys; then each storage, with the number of its elements in front.
TorchFile read_pickles(Bytes bytes, const std::string& source) {
  const auto next = [&] {
    Pickle pickle = read_pickle(bytes, allowed_globals, source);
    bytes = bytes.subspan(pickle.size);
    return pickle;
  };
  constexpr std::string_view magic_number = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  const Pickle magic = next();
  check(magic.root->kind == PickleKind::long_integer && magic.root->text == magic_number,
        "{}: a pickle, but not one of torch.save", source);
  const Pickle version = next();
  check(version.root->kind == PickleKind::integer && version.root->integer == 1001,
        "{}: a version of torch.save's format that is not 1001", source);
  const Pickle machine = next();
  const auto& facts = machine.root->items;
  for (std::size_t i = 0; machine.root->kind == PickleKind::dict && i < facts.size(); i += 2) {
    check(facts[i]->text != "little_endian" || facts[i + 1]->integer == 1,
          "{}: it was written on a machine with another order of bytes", source);
  }
  TorchFile file{next(), {}};
  std::map<std::string_view, StorageId> ids;
  for (const PickleValue* value : file.pickle.persistent) {
    const StorageId id = storage_of(*value, source);
    ids.emplace(id.key, id);
  }
  const Pickle keys = next();
  check(keys.root->kind == PickleKind::list, "{}: the list of its storages is missing", source);
  for (const PickleValue* key : keys.root->items) {
    const auto found = ids.find(key->text);
    check(key->kind == PickleKind::text && found != ids.end(), "{}: it holds a storage that no tensor has", source);
    const std::string name = as_utf8(shown(key->text));
    std::uint64_t numel = 0;
    check(bytes.size() >= sizeof(numel), "{}: cut short: the storage '{}' is missing", source, name);
    std::memcpy(&numel, bytes.data(), sizeof(numel));
    bytes = bytes.subspan(sizeof(numel));
    check(numel <= bytes.size() / bytes_each(found->second),
          "{}: cut short: the storage '{}' should have {} of {}, but only {} bytes follow", source, name, numel,
          found->second.dtype, bytes.size());
    file.storages.try_emplace(std::string(key->text), bytes.first(numel * bytes_each(found->second)));
    bytes = bytes.subspan(numel * bytes_each(found->second));
  }
  return file;
}

// The value of `key`; none if it is not there, or None. Of several values the last counts.
const PickleValue* value_of(const PickleValue& dict, std::string_view key) {
  const PickleValue* value = nullptr;
  for (std::size_t i = 0; i < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == PickleKind::text && dict.items[i]->text == key) {
      value = dict.items[i + 1];
    }
  }
  return value != nullptr && value->kind != PickleKind::none ? value : nullptr;
}

const PickleValue& state_dict_of(const PickleValue& root, const std::string& source) {
  check(root.kind == PickleKind::dict, "{}: it holds {}, and not a dict of tensors", source, described(root.kind));
  for (const char* key : {"state_dict_ema", "model_ema", "state_dict", "model"}) {
    if (const PickleValue* value = value_of(root, key)) {
      check(value->kind == PickleKind::dict, "{}: its '{}' is {}, and not a dict of tensors", source, key,
            described(value->kind));
      return *value;
    }
  }
  return root;
}

// The name without what DDP and torch.compile put in front, in either order.
std::string_view without_wrappers(std::string_view name) {
  for (const std::string_view wrapper : {"_orig_mod.", "module.", "_orig_mod."}) {
    if (name.starts_with(wrapper)) {
      name.remove_prefix(wrapper.size());
    }
  }
  return name;
}

}  // namespace

bool is_torch_file(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t protocol = 0x80;  // what pickles of protocol 2 and later begin with
  return is_zip(bytes) || (!bytes.empty() && bytes[0] == protocol);
}

StoredTensors open_torch_file(const std::filesystem::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return parse_torch_file(file->bytes(), file, path.string());
}

StoredTensors parse_torch_file(std::span<const std::uint8_t> bytes, const std::shared_ptr<const void>& owner,
                               const std::string& name) {
  check(is_torch_file(bytes), "{}: not a file of torch.save: it begins neither as a ZIP archive nor as a pickle", name);
  const TorchFile file = is_zip(bytes) ? read_archive(bytes, name) : read_pickles(bytes, name);
  const PickleValue& state = state_dict_of(*file.pickle.root, name);
  const Tensors tensors(file, owner, name);
  StoredTensors result(name);
  for (std::size_t i = 0; i < state.items.size(); i += 2) {
    const PickleValue& key = *state.items[i];
    const PickleValue& value = *state.items[i + 1];
    check(key.kind == PickleKind::text, "{}: a name in its dict of tensors is {}, and not a text", name,
          described(key.kind));
    const std::string own = as_utf8(std::string(without_wrappers(key.text)));
    std::optional<StoredTensor> tensor = tensors.tensor(value, shown(own));
    check(tensor.has_value(),
          "{}: '{}' is {}, and not a tensor: the weights must be the value itself, or its "
          "'state_dict' or 'model'",
          name, shown(own), described(value.kind));
    result.add(own, std::move(*tensor));
  }
  return result;
}

}  // namespace vitrail::io
