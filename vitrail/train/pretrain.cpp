#include "vitrail/train/pretrain.h"

#include <fmt/format.h>

#include "vitrail/data/dataset.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {

TrainOptions pretraining_defaults(const std::string& method) {
  TrainOptions options;
  options.pretrain = method;
  options.model = "vit_small_patch16_224";
  options.val_split = "";
  options.opt_betas = {0.9, 0.95};
  options.lr_base = 1.5e-4;
  options.lr_base_scale = "linear";
  options.warmup_lr = 0;
  options.epochs = 400;
  options.scale = {0.2, 1};
  options.train_interpolation = "bicubic";
  options.color_jitter = {0};
  options.smoothing = 0;
  return options;
}

Setup set_up_pretraining(const TrainOptions& options, const std::filesystem::path& checkpoint) {
  Setup setup;
  data::DatasetOptions pictures;
  pictures.split = options.train_split;
  pictures.labeled = false;
  setup.training = data::open_dataset(options.data_dir, pictures);
  check(setup.training->size() >= options.batch_size,
        "--batch-size {} is more than the {} pictures of '{}': choose at most {}", options.batch_size,
        setup.training->size(), options.data_dir, setup.training->size());
  if (checkpoint.empty()) {
    models::MaeOptions mae;
    mae.mask_ratio = options.mask_ratio;
    mae.norm_pix_loss = options.norm_pix_loss;
    if (!std::filesystem::is_directory(options.model)) {  // a folder's decoder is what it is
      mae.decoder_dim = options.decoder_dim;
      mae.decoder_depth = options.decoder_depth;
      mae.decoder_heads = options.decoder_heads;
    }
    setup.model = models::open_masked_autoencoder(options.model, create_options(options), mae);
  } else {
    models::MaeOptions mae;
    mae.mask_ratio = options.mask_ratio;
    setup.model = models::open_masked_autoencoder(checkpoint.string(), {}, mae);
  }
  setup.objective = masked_autoencoding(*models::masked_autoencoder(setup.model));
  finish_setup(options, setup);
  return setup;
}

std::string pretraining_text(const TrainOptions& options) {
  return fmt::format("masked autoencoder, {:.0f} % of the patches hidden", 100 * options.mask_ratio);
}

Objective masked_autoencoding(const models::MaskedAutoencoder& mae) {
  return [&mae](const data::Batch& batch, nn::Pass& pass) {
    const models::Masking masking = mae.random_masking(batch.x.size(0), pass.random);
    return mae.loss(batch.x, masking, pass);
  };
}

}  // namespace vitrail::train
