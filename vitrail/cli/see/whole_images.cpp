#include "vitrail/cli/see/whole_images.h"

#include "vitrail/models/features.h"
#include "vitrail/tensor/error.h"

namespace vitrail::cli {

WholeImageModel open_for_whole_images(const ModelFlags& given) {
  check_usage(!given.images.crop_pct && given.images.crop_mode.empty(),
              "--crop-pct and --crop-mode have no effect: images are taken whole");
  ModelFlags flags = given;
  flags.img_size.reset();
  models::CreateOptions options = flags.options();
  const std::string source = flags.name_or_folder();
  check(models::let_take_any_size(source, options),
        "'{}' is no Vision Transformer that reads images of any size, as whole ones are: name another, such as "
        "vitrail/scenes_dino",
        flags.model);
  if (options.model_kwargs != flags.options().model_kwargs) {
    flags.kwargs.emplace_back("dynamic_img_size=true");
  }
  WholeImageModel whole{.model = flags.open_for_images(), .patch = 0, .shorter = given.img_size.value_or(0)};
  whole.patch = models::patch_side(*whole.model.net);
  return whole;
}

}  // namespace vitrail::cli
