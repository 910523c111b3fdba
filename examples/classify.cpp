// What does a model see in an image?   classify MODEL_FOLDER IMAGE
#include <iostream>

#include <vitrail/vitrail.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: classify MODEL_FOLDER IMAGE\n";
    return 2;
  }
  try {
    const vitrail::models::Model model = vitrail::models::load_model(argv[1]);
    const vitrail::Tensor probabilities = vitrail::train::predict(model, {vitrail::io::read_image(argv[2])});
    const std::vector<std::string> names = vitrail::train::class_names(model);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::cout << names[i] << ' ' << probabilities.values()[i] << '\n';
    }
  } catch (const vitrail::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
