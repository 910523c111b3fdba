// Where does a model look?   attention_map MODEL_FOLDER IMAGE OUTPUT.png
#include <iostream>

#include <vitrail/vitrail.h>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: attention_map MODEL_FOLDER IMAGE OUTPUT.png\n";
    return 2;
  }
  using namespace vitrail;
  try {
    const models::Model model = models::load_model(argv[1]);
    const data::Transform transform = data::eval_transform(model.pretrained);
    const Tensor x = transform(io::read_image(argv[2])).unsqueeze(0);
    const explain::Attention attention = explain::record_attention(*model.net, x);
    const io::Image image = explain::image_of(x, model.pretrained.mean, model.pretrained.std);
    io::write_png(argv[3], explain::overlay(image, explain::rollout(attention)));
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
