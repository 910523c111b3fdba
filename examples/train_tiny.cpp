// A training loop of one's own: a small ViT on the images of a data set.   train_tiny DATA MODEL_FOLDER
#include <iostream>

#include <vitrail/vitrail.h>

using namespace vitrail;

namespace {

void fit(const char* source, const char* folder) {
  const auto dataset = data::open_dataset(source);
  models::Model model = models::create_model(
      "vit_tiny_patch16_224",
      {.num_classes = static_cast<std::int64_t>(dataset->classes().size()),
       .model_kwargs = R"({"img_size": 32, "patch_size": 4, "embed_dim": 64, "depth": 2, "num_heads": 2})"});
  model.pretrained.label_names = dataset->classes();

  data::LoaderOptions batches;
  batches.batch_size = 50;
  batches.shuffle = true;
  data::Loader loader(*dataset, data::eval_transform(model.pretrained), batches);

  nn::ParameterStore& parameters = model.net->parameters;
  const auto undecayed = [&](const std::string& name) { return model.net->no_weight_decay(name); };
  optim::Optimizer optimizer(parameters, {.opt = "adamw"}, optim::groups_by_weight_decay(parameters, 0.05, undecayed));

  std::uint64_t step = 0;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    for (data::Batch batch; loader.next(batch); ++step) {
      autograd::Tape tape;
      nn::Pass pass{.training = true, .random = RandomStream(mix(0, step))};
      const Tensor loss = ops::cross_entropy(model.net->forward(batch.x, pass), batch.labels);
      tape.backward(loss);
      optimizer.step(1e-3);
      parameters.zero_grad();
      if (step % 10 == 0) {
        std::cout << "step " << step << ", loss " << loss.item() << '\n';
      }
    }
  }
  models::save_model(model, folder);  // timm opens it, too
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: train_tiny DATA MODEL_FOLDER\n";
    return 2;
  }
  try {
    fit(argv[1], argv[2]);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
