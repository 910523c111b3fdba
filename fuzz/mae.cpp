// Any bytes as the config.json of a masked autoencoder's folder: an Error, or a model whose shapes can be asked for.
#include "vitrail/models/vit/mae.h"

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(mae)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("mae");
  const MemoryLimit limit;
  folder.write("config.json", text_of(data, size));
  try {
    models::CreateOptions options;
    options.fill = nn::Fill::meta;
    const models::Model model = models::open_masked_autoencoder(folder.path().string(), options);
    require(model.net->depth() >= 0 && model.pretrained.height > 0 && model.pretrained.width > 0);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::int64_t layer = model.net->layer_of(parameter.name);
      require(layer >= 0 && layer <= model.net->depth() + 1);
    }
  } catch (const Error&) {
  }
  return 0;
}
