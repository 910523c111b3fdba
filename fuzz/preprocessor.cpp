// Any bytes as the preprocessor_config.json of a folder of Hugging Face's: an Error, or how images are prepared.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/data/transforms.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(preprocessor)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("preprocessor");
  folder.write("config.json",
               R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 12,
                   "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 8,
                   "patch_size": 4, "num_channels": 3, "hidden_act": "gelu", "qkv_bias": true})");
  const MemoryLimit limit;
  folder.write("preprocessor_config.json", text_of(data, size));
  try {
    models::CreateOptions options;
    options.fill = nn::Fill::meta;
    const models::Model model = models::load_model(folder.path(), options);
    const data::ImageConfig& config = model.pretrained;
    require(config.height > 0 && config.width > 0 && config.channels > 0);
    if (config.height <= 512 && config.width <= 512) {
      require(data::eval_transform(config)(io::Image(5, 3)).numel() == config.channels * config.height * config.width);
    }
  } catch (const Error&) {
  }
  return 0;
}
