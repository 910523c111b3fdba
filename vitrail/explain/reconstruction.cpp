#include "vitrail/explain/reconstruction.h"

#include "vitrail/explain/overlay.h"
#include "vitrail/models/vit/mae.h"

namespace vitrail::explain {

io::Image reconstruction_sheet(const models::Model& model, const std::vector<Tensor>& inputs, std::uint64_t seed,
                               DType dtype) {
  const models::MaskedAutoencoder* mae = models::masked_autoencoder(model);
  check(mae != nullptr, "only masked autoencoders reconstruct images, and '{}' is none", model.architecture);
  const auto image = [&](const Tensor& x) { return image_of(x, model.pretrained.mean, model.pretrained.std); };
  std::vector<std::vector<io::Image>> rows;
  for (const Tensor& x : inputs) {
    RandomStream random(mix(seed, rows.size()));
    const models::Masking masking = mae->random_masking(1, random);
    nn::Pass pass;
    pass.dtype = dtype;
    rows.push_back({image(mae->masked(x, masking)), image(mae->reconstruct(x, masking, pass)), image(x)});
  }
  return sheet(rows, {.rows = {}, .columns = {"masked input", "reconstruction", "original"}});
}

}  // namespace vitrail::explain
