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
