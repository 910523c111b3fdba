#include "vitrail/models/joint/captioner.h"

#include "vitrail/io/file.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/joint/blip_captioner.h"
#include "vitrail/models/joint/recurrent_captioner.h"
#include "vitrail/models/joint/vision_encoder_decoder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

namespace fs = std::filesystem;

std::unique_ptr<TextState> Captioning::begin(std::optional<DType> cache) const {
  nn::Pass pass{.dtype = dtype_};
  return model_.begin(x_, pass, cache);
}

Tensor Captioning::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  check(state == nullptr, "a caption goes on by forward_last()");
  return ops::cast(model_.logits(x_, {ids}, pass), DType::f32);
}

void Captioner::write_generation_config(const fs::path& folder) const {
  if (!generation_config.empty()) {
    io::write_atomically(folder / generation_file, generation_config);
  }
}

TokenLayout layout_of_tokens(const ImageModel& model, std::int64_t height, std::int64_t width, std::int64_t count) {
  TokenLayout layout = model.token_layout(height, width);
  while (layout.rows > 1 && layout.columns > 1 && layout.prefix + layout.rows * layout.columns > count) {
    layout.rows /= 2;
    layout.columns /= 2;
  }
  check(layout.prefix + layout.rows * layout.columns == count, "the {} tokens of the image lie on no grid", count);
  return layout;
}

std::int64_t texts_of_each(std::int64_t texts, std::int64_t images) {
  check(images > 0 && texts > 0 && texts % images == 0, "{} texts cannot be about {} images, equally many about each",
        texts, images);
  return texts / images;
}

Tensor repeated_rows(std::int64_t images, std::int64_t each) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(images * each));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::int64_t>(i) / each;
  }
  return Tensor::from(rows, {std::ssize(rows)});
}

std::vector<nn::DecoderBlock::Source> sources_in_a_row(std::vector<nn::DecoderBlock::Source> sources,
                                                       std::int64_t texts) {
  for (nn::DecoderBlock::Source& source : sources) {
    const std::int64_t images = source.memory.keys.size(0);
    const std::int64_t places = source.memory.keys.size(1);
    const std::int64_t each = texts_of_each(texts, images);
    const auto in_a_row = [&](const Tensor& x) {
      const Tensor repeated = each == 1 ? x : ops::index_select(x, 0, repeated_rows(images, each));
      return ops::reshape(repeated, {1, texts * places, x.size(2)});
    };
    source.memory = {in_a_row(source.memory.keys), in_a_row(source.memory.values)};
    std::vector<std::int64_t> begins(static_cast<std::size_t>(texts) + 1);
    for (std::size_t i = 0; i < begins.size(); ++i) {
      begins[i] = static_cast<std::int64_t>(i) * places;
    }
    source.offsets = Tensor::from(begins, {std::ssize(begins)});
  }
  return sources;
}

bool is_captioner_folder(const fs::path& folder) {
  const std::string type = model_type_in(shipped_or(folder));
  return type == recurrent_captioner_type || type == vision_encoder_decoder_type || type == attending_captioner_type ||
         is_blip_captioner_folder(folder);
}

std::unique_ptr<Captioner> load_captioner(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  const std::string type = model_type_in(folder);
  std::unique_ptr<Captioner> model = type == vision_encoder_decoder_type ? load_vision_encoder_decoder(folder)
                                     : type == attending_captioner_type  ? load_attending_captioner(folder)
                                     : is_blip_captioner_folder(folder)  ? load_blip_captioner(folder)
                                                                         : load_recurrent_captioner(folder);
  if (fs::exists(folder / generation_file)) {
    model->generation_config = io::read_text(folder / generation_file);
  }
  return model;
}

}  // namespace vitrail::models
