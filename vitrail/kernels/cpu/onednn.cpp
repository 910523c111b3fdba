#include "vitrail/kernels/cpu/onednn.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <omp.h>

#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/pack_weight.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/random.h"

namespace vitrail::kernels {
namespace onednn {
namespace {

std::atomic<std::uint64_t> packing_count = 0;

dnnl::memory::dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream mine(engine());
  return mine;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl::memory::data_type::f32;
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    case DType::i32:
      return dnnl::memory::data_type::s32;
    case DType::i8:
      return dnnl::memory::data_type::s8;
    case DType::u8:
      return dnnl::memory::data_type::u8;
    default:
      fail("oneDNN has no {}", name_of(dtype));
  }
}

namespace {

// The name of oneDNN's implementation of a matrix product; empty if it has none.
std::string product_code(DType operands, DType result) {
  const dnnl::memory::dims square = {64, 64};
  const Desc in(square, type_of(operands), dnnl::memory::format_tag::ab);
  const Desc out(square, type_of(result), dnnl::memory::format_tag::ab);
  try {
    return forward_desc<dnnl::matmul>(dnnl::primitive_attr(), in, in, out).impl_info_str();
  } catch (const dnnl::error&) {
    return "";
  }
}

// Whether oneDNN has the gradients of products and convolutions in bf16. (On CPUs with AVX2-VNNI-2 and no AVX-512,
// oneDNN 3 has the products alone.)
bool has_gradients_in_bf16() {
#if defined(__x86_64__)
  return may_use(dnnl::cpu_isa::avx512_core);
#else
  return true;
#endif
}

}  // namespace

bool computes(DType dtype) {
  if (dtype == DType::bf16) {
    static const std::string code = product_code(DType::bf16, DType::bf16);
    return !code.empty() && !code.starts_with("ref") && has_gradients_in_bf16();
  }
  if (dtype == DType::i8) {
    static const std::string code = product_code(DType::i8, DType::i32);  // named after its instructions
    return code.find("vnni") != std::string::npos || code.find("amx") != std::string::npos ||
           code.find("avx10") != std::string::npos;
  }
  return true;
}

Desc describe(const Shape& shape, const Shape& strides, DType dtype) {
  if (shape.rank() == 0) {
    return {{1}, type_of(dtype), dnnl::memory::dims{1}};
  }
  return {dims(shape), type_of(dtype), dims(strides)};
}

Desc describe(const Tensor& tensor) { return describe(tensor.shape(), tensor.strides(), tensor.dtype()); }

Desc any_layout(const Shape& shape, DType dtype) {
  return {dims(shape), type_of(dtype), dnnl::memory::format_tag::any};
}

dnnl::memory view(const Tensor& tensor, const Desc& desc) { return {desc, engine(), tensor.raw()}; }
dnnl::memory view(const Tensor& tensor) { return view(tensor, describe(tensor)); }

Tensor allocate(const Desc& desc) { return Tensor::empty({static_cast<std::int64_t>(desc.get_size())}, DType::u8); }

Key& Key::add(const Shape& shape) {
  add(shape.rank());
  for (const std::int64_t size : shape) {
    add(size);
  }
  return *this;
}

Key& Key::add(const Tensor& tensor) {
  if (!tensor.defined()) {
    return add(-1);
  }
  return add(static_cast<std::int64_t>(tensor.dtype())).add(tensor.shape()).add(tensor.strides());
}

bool Key::operator==(const Key& other) const {
  return std::ranges::equal(std::span(numbers_.data(), count_), std::span(other.numbers_.data(), other.count_));
}

std::size_t Key::hash() const {
  std::uint64_t value = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    value = mix(value, static_cast<std::uint64_t>(numbers_[i]));
  }
  return value;
}

Compiled::Compiled(const dnnl::primitive_desc_base& desc)
    : primitive(desc.get()),
      source(desc.query_md(dnnl::query::src_md)),
      weights(desc.query_md(dnnl::query::weights_md)),
      destination(desc.query_md(dnnl::query::dst_md)),
      workspace(desc.query_md(dnnl::query::workspace_md)),
      diff_source(desc.query_md(dnnl::query::diff_src_md)),
      diff_weights(desc.query_md(dnnl::query::diff_weights_md)),
      diff_destination(desc.query_md(dnnl::query::diff_dst_md)),
      scratchpad(desc.query_md(dnnl::query::scratchpad_md)),
      reference(std::string_view(desc.impl_info_str()).starts_with("ref")) {}

void Compiled::run(Arguments arguments) const {
  Tensor scratch;
  if (scratchpad.get_size() > 0) {
    scratch = allocate(scratchpad);
    arguments.insert_or_assign(DNNL_ARG_SCRATCHPAD, view(scratch, scratchpad));
  }
  for (const auto& [place, memory] : arguments) {
    if (place != DNNL_ARG_SCRATCHPAD) {
      Profile::traffic(static_cast<double>(memory.get_desc().get_size()));
    }
  }
  primitive.execute(stream(), arguments);
  stream().wait();
}

std::shared_ptr<const Compiled> compiled(Key key, const std::function<dnnl::primitive_desc_base()>& make) {
  struct Hash {
    std::size_t operator()(const Key& k) const { return k.hash(); }
  };
  static std::shared_mutex mutex;
  static std::unordered_map<Key, std::shared_ptr<const Compiled>, Hash> cache;
  constexpr std::size_t capacity = 4096;  // keys that never recur (images of any size) must not pile up

  key.add(omp_get_max_threads());  // a primitive divides its work among the threads when it is made
  const auto find = [&]() -> std::shared_ptr<const Compiled> {
    const std::shared_lock lock(mutex);
    const auto found = cache.find(key);
    return found != cache.end() ? found->second : nullptr;
  };
  if (auto found = find()) {
    return found;
  }
  // One thread makes at a time: another that waits for the same primitive then finds it, and what oneDNN shares among
  // the descriptors of several threads is ordered by a lock that the thread sanitizer sees.
  static std::mutex making;
  const std::lock_guard one_at_a_time(making);
  if (auto found = find()) {
    return found;
  }
  auto made = std::make_shared<const Compiled>(make());
  const std::unique_lock lock(mutex);
  if (cache.size() >= capacity) {
    cache.clear();
  }
  return cache.try_emplace(key, std::move(made)).first->second;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

namespace {

// One packed form of one view of a storage: a layout, and the packed weight if it is kept.
struct Form {
  std::int64_t offset;
  Desc plain;
  Desc layout;
  std::int64_t width;         // of the layout's blocks, if pack_weight() knows it, else 0
  dnnl::reorder reorder;      // of any other layout
  std::uint64_t version = 0;  // of the storage, that was packed
  std::uint64_t content = 0;  // hash of the weight that was packed, for set_check_touched(); 0: not known
  Packed packed = {};         // undefined: not kept
  // How often `used_version` was asked for while a TransientPacking lived, and whether the version before it was more
  // than once.
  std::uint64_t used_version = 0;
  int uses = 0;
  bool used_again_before = false;

  // Counts a use of `version` that is meant to be the only one, and returns whether to keep what is packed all the
  // same.
  bool is_used_again(std::uint64_t version) {
    if (used_version != version) {
      used_again_before = uses > 1;
      used_version = version;
      uses = 0;
    }
    ++uses;
    return uses > 1 || used_again_before;
  }
};

// The width of the layout's blocks if pack_weight() can make that layout from this weight, else 0.
std::int64_t block_width(const Tensor& weight, const Desc& layout) {
  using Tag = dnnl::memory::format_tag;
  if (weight.dtype() != DType::f32 || weight.rank() != 2 || (weight.stride(0) != 1 && weight.stride(1) != 1) ||
      weight.numel() == 0) {
    return 0;
  }
  const auto is = [&](Tag tag) { return layout == Desc(dims_of(layout), type_of(layout), tag); };
  const auto one_of = [&](Tag w16, Tag w32, Tag w48, Tag w64) {
    return is(w16) ? 16 : is(w32) ? 32 : is(w48) ? 48 : is(w64) ? 64 : 0;
  };
  switch (type_of(layout)) {
    case dnnl::memory::data_type::bf16:
      return one_of(Tag::BA16a16b2a, Tag::BA16a32b2a, Tag::BA16a48b2a, Tag::BA16a64b2a);
    case dnnl::memory::data_type::f32:
      return one_of(Tag::BA16a16b, Tag::BA16a32b, Tag::BA16a48b, Tag::BA16a64b);
    default:
      return 0;
  }
}

struct Forms {
  std::vector<Form> all;

  Form& find(const Tensor& weight, const Desc& layout) {
    const Desc plain = describe(weight);
    for (Form& form : all) {
      if (form.offset == weight.offset() && form.plain == plain && form.layout == layout) {
        return form;
      }
    }
    const std::int64_t width = block_width(weight, layout);
    const auto reorder =
        width > 0 ? dnnl::reorder() : dnnl::reorder(dnnl::reorder::primitive_desc(engine(), plain, engine(), layout));
    return all.emplace_back(Form{weight.offset(), plain, layout, width, reorder});
  }

  // Gives back what was packed of older versions, but for `used`, whose memory may serve again.
  void drop_stale(const Form& used, std::uint64_t version) {
    for (Form& form : all) {
      if (&form != &used && form.version != version) {
        form.packed = {};
      }
    }
  }
};

void pack(const Form& form, const Tensor& weight, dnnl::memory& memory) {
  const Profile::Inner event("pack weights", static_cast<double>(form.plain.get_size() + form.layout.get_size()));
  ++packing_count;
  if (form.width > 0) {
    const PlainWeight plain{weight.data<float>(), weight.size(0), weight.size(1), weight.stride(0), weight.stride(1)};
    const bool narrow = type_of(form.layout) == dnnl::memory::data_type::bf16;
    return pack_weight(plain, form.width, narrow ? DType::bf16 : DType::f32, memory.get_data_handle());
  }
  dnnl::memory from = view(weight, form.plain);
  form.reorder.execute(stream(), from, memory);
  stream().wait();
}

thread_local bool for_one_use = false;

#ifdef NDEBUG
bool touched_check = false;
#else
bool touched_check = true;
#endif

// A hash of the elements of a weight, which is not 0.
std::uint64_t content_of(const Tensor& weight) {
  const Tensor dense = weight.contiguous();
  return hash({reinterpret_cast<const char*>(dense.raw()), dense.bytes()}) | 1;
}

}  // namespace

Packed packed(const Tensor& weight, const Desc& layout) {
  static std::mutex mutex;
  Storage& storage = weight.storage();
  const std::lock_guard lock(mutex);
  if (storage.derived() == nullptr) {
    storage.derived() = std::make_shared<Forms>();
  }
  Forms& forms = *static_cast<Forms*>(storage.derived().get());
  Form& form = forms.find(weight, layout);
  const bool keep = !for_one_use || form.is_used_again(storage.version());
  const bool kept = form.packed.elements.defined();
  if (kept && form.version == storage.version()) {
    check(!touched_check || form.content == 0 || form.content == content_of(weight),
          "a weight {} was changed in place without touch(), which its products need to see the change",
          weight.shape());
    return form.packed;
  }
  if (for_one_use) {
    forms.drop_stale(form, storage.version());
  }
  Packed result = form.packed;
  if (!kept || !keep) {
    form.packed = {};
    result.elements = allocate(layout);
    result.memory = view(result.elements, layout);
  }
  pack(form, weight, result.memory);
  if (keep) {
    form.packed = result;
    form.version = storage.version();
    form.content = touched_check ? content_of(weight) : 0;
  }
  return result;
}

bool multiplies_as_it_lies(const Tensor& weight) { return for_one_use && weight.dtype() != DType::f32; }

void unpack(const dnnl::memory& from, const Tensor& to) {
  dnnl::memory plain = view(to);
  dnnl::memory source = from;
  dnnl::reorder(source, plain).execute(stream(), source, plain);
  stream().wait();
}

}  // namespace onednn

TransientPacking::TransientPacking(bool on) : before_(onednn::for_one_use) { onednn::for_one_use = on; }
TransientPacking::~TransientPacking() { onednn::for_one_use = before_; }

std::uint64_t packings() { return onednn::packing_count; }

void set_check_touched(bool on) { onednn::touched_check = on; }

}  // namespace vitrail::kernels
