#include "vitrail/models/joint/captioner.h"

#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/joint/recurrent_captioner.h"
#include "vitrail/models/joint/vision_encoder_decoder.h"
#include "vitrail/ops/math/arithmetic.h"

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

bool is_captioner_folder(const fs::path& folder) {
  const std::string type = model_type_in(shipped_or(folder));
  return type == recurrent_captioner_type || type == vision_encoder_decoder_type || type == attending_captioner_type;
}

std::unique_ptr<Captioner> load_captioner(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  const std::string type = model_type_in(folder);
  return type == vision_encoder_decoder_type ? load_vision_encoder_decoder(folder)
         : type == attending_captioner_type  ? load_attending_captioner(folder)
                                             : load_recurrent_captioner(folder);
}

}  // namespace vitrail::models
