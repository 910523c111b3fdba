// The tasks on texts: classes, tags, vectors of sentences, and pretraining.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "tests/train/ranked.h"
#include "tests/train/tasks/own_losses.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/train.h"
#include "vitrail/train/run/records.h"
#include "vitrail/train/tasks/bert_examples.h"
#include "vitrail/train/tasks/classify_text.h"
#include "vitrail/train/tasks/embed_sentences.h"
#include "vitrail/train/tasks/pretrain_bert.h"
#include "vitrail/train/tasks/registry.h"
#include "vitrail/train/tasks/tag.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const tiny_bert =
    R"({"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 32})";

// Sentences of animals and of weather, of 3 to 5 words.
std::vector<std::string> sentences_of(bool animals) {
  const std::vector<std::string> who = animals ? std::vector<std::string>{"the dog", "a cat", "the old horse"}
                                               : std::vector<std::string>{"the rain", "a storm", "the cold snow"};
  const std::vector<std::string> does =
      animals ? std::vector<std::string>{"runs", "eats", "sleeps"} : std::vector<std::string>{"falls", "ends", "comes"};
  std::vector<std::string> all;
  for (const std::string& subject : who) {
    for (const std::string& verb : does) {
      all.push_back(subject + " " + verb);
      all.push_back(subject + " " + verb + " today");
    }
  }
  return all;
}

// A folder with the data and the tokenizer of all tasks.
class TextTasks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    std::ofstream labelled(path("labelled.tsv"));
    std::ofstream tagged(path("tagged.txt"));
    std::ofstream a(path("a.txt"));
    std::ofstream b(path("b.txt"));
    std::ofstream corpus(path("corpus.txt"));
    std::vector<std::string> all;
    for (const bool animals : {true, false}) {
      for (const std::string& sentence : sentences_of(animals)) {
        all.push_back(sentence);
        labelled << (animals ? "animal" : "weather") << "\t" << sentence << "\n";
        std::istringstream words(sentence);
        for (std::string word; words >> word;) {
          tagged << word << (word.ends_with('s') ? " VERB" : " OTHER") << "\n";
        }
        tagged << "\n";
        a << sentence << "\n";
        b << "indeed " << sentence << "\n";
        corpus << sentence << "\n" << sentence << " again\n\n";
      }
    }
    const text::TokenizerTraining training{
        .vocab_size = 60, .min_frequency = 0, .special_tokens = {}, .lowercase = true};
    fs::create_directory(path("tokenizer"));
    text::train_wordpiece(all, training).save(path("tokenizer"));
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  template <class Options>
  static Options tiny(const std::string& experiment) {
    Options options;
    options.tokenizer = path("tokenizer");
    options.model = "bert-tiny";
    options.model_kwargs = tiny_bert;
    options.output = path("runs");
    options.experiment = experiment;
    options.batch_size = 6;
    options.epochs = 3;
    options.lr = 3e-3;
    options.drop = 0.1;
    options.threads = 1;
    if constexpr (std::is_same_v<Options, EmbedSentencesOptions>) {
      options.src = path("a.txt");
      options.tgt = path("b.txt");
    } else {
      options.data = path(std::is_same_v<Options, TagOptions>            ? "tagged.txt"
                          : std::is_same_v<Options, PretrainBertOptions> ? "corpus.txt"
                                                                         : "labelled.tsv");
    }
    return options;
  }

  // Trains a run whole, and another one in two parts: both end with the same bits.
  template <class Options>
  static void expect_resumes(const std::string& name, std::optional<std::int64_t> batch_tokens = std::nullopt) {
    Options options = tiny<Options>(name + "-whole");
    options.batch_tokens = batch_tokens;
    fit(options);
    options.experiment = name + "-stopped";
    FitHooks hooks;
    std::int64_t seen = 0;
    hooks.on_step = [&](std::int64_t step, double) { seen = step; };
    hooks.should_stop = [&] { return seen >= 4; };
    EXPECT_TRUE(fit(options, hooks).stopped);
    fit(test::resumed<Options>(path("runs/" + name + "-stopped")));
    const auto checksum = [&](const std::string& run) {
      return weights_checksum(*models::load_text_model(path("runs/" + name + run + "/last")).net);
    };
    EXPECT_EQ(checksum("-whole"), checksum("-stopped")) << name;
    EXPECT_EQ(task_kind_of_run(path("runs/" + name + "-stopped")).name, options.kind());
  }

  static inline test::TemporaryFolder* folder_ = nullptr;
};

TEST_F(TextTasks, ResumeToTheSameBits) {
  expect_resumes<ClassifyTextOptions>("classify");
  expect_resumes<TagOptions>("tag");
  expect_resumes<EmbedSentencesOptions>("embed");
  expect_resumes<PretrainBertOptions>("bert");
  expect_resumes<ClassifyTextOptions>("tokens", 30);
}

// What a folder knows of its classes belongs to their names, whatever their order; others begin anew, which is told.
TEST_F(TextTasks, KeepWhatAFolderKnowsOfItsClasses) {
  auto options = tiny<ClassifyTextOptions>("known");
  fit(options);
  const fs::path known = path("runs/known/best");
  nlohmann::json config = io::read_json(known / "config.json");
  ASSERT_EQ(config["id2label"]["0"], "animal");
  config["id2label"] = {{"0", "weather"}, {"1", "animal"}};
  config["label2id"] = {{"weather", 0}, {"animal", 1}};
  io::write_atomically(known / "config.json", config.dump());
  const auto classifier = [](const fs::path& folder) {
    return io::Safetensors::open(folder / "model.safetensors").get("classifier.weight").values();
  };
  options.model = known.string();
  options.model_kwargs = "{}";
  options.tokenizer.clear();
  options.lr = 1e-20;
  options.schedule.warmup_lr = 0;
  options.epochs = 1;
  options.experiment = "again";
  fit(options);
  EXPECT_EQ(models::labels_of(models::load_text_model(path("runs/again/last"))),
            (std::vector<std::string>{"weather", "animal"}));
  EXPECT_EQ(classifier(path("runs/again/last")), classifier(known));

  std::ofstream(path("others.tsv"))
      << "cold\tthe rain falls\nwarm\ta cat eats\ncold\ta storm ends\nwarm\tthe dog runs\n";
  const auto told = [&] { return options.make({})->summary(); };
  EXPECT_THAT(told(), Not(Contains(HasSubstr("begins anew"))));
  options.data = path("others.tsv");
  options.val_share = 0;
  options.batch_size = 2;
  EXPECT_THAT(told(), Contains("note: the classes of '" + known.string() + "' are others: the classifier begins anew"));
  options.experiment = "others";
  fit(options);
  EXPECT_NE(classifier(path("runs/others/last")), classifier(known));
  config["problem_type"] = "regression";
  io::write_atomically(known / "config.json", config.dump());
  EXPECT_THAT(told(),
              Contains("note: '" + known.string() + "' predicts numbers, and no classes: the classifier begins anew"));
}

// transformers makes ids of types for two texts only if the config of a tokenizer of no model asks for them.
TEST_F(TextTasks, SayThatTheirTokenizerGivesTypes) {
  auto options = tiny<ClassifyTextOptions>("types");
  options.epochs = 1;
  const fs::path given = fs::path(options.tokenizer) / "tokenizer_config.json";
  ASSERT_FALSE(io::read_json(given).contains("model_input_names"));
  fit(options);
  EXPECT_EQ(io::read_json(path("runs/types/best/tokenizer_config.json"))["model_input_names"],
            (std::vector<std::string>{"input_ids", "token_type_ids", "attention_mask"}));
}

// Batches of texts, or of tokens, have the mean of the texts' own losses, and multiply no padding.
TEST_F(TextTasks, HaveTheMeanOfTheTextsOwnLosses) {
  const auto expect_own_losses = [](auto options) {
    options.drop = 0;
    options.no_shuffle = true;
    options.val_share = 0;
    options.batch_size = 1;
    const std::unique_ptr<Task> alone = options.make("");
    options.batch_size = 7;
    const std::unique_ptr<Task> seven = options.make("");
    test::expect_sums(*seven, *alone);
    alone->batches().start_epoch(0);
    options.batch_tokens = 40;
    const std::unique_ptr<Task> tokens = options.make("");
    EXPECT_EQ(tokens->batch_items(), "tokens");
    test::expect_sums(*tokens, *alone);
  };
  expect_own_losses(tiny<ClassifyTextOptions>("own-classes"));
  expect_own_losses(tiny<TagOptions>("own-tags"));
  ClassifyTextOptions recurrent = tiny<ClassifyTextOptions>("own-recurrent");
  recurrent.model = "gru";
  recurrent.model_kwargs = R"({"hidden_size": 16, "num_layers": 2, "bidirectional": true})";
  expect_own_losses(recurrent);
}

// With --batch-tokens a run is resumed to the same bits too, and masked tokens and pairs are learned alike.
TEST_F(TextTasks, CountBatchesInTokens) {
  PretrainBertOptions masked = tiny<PretrainBertOptions>("tokens-bert");
  masked.batch_tokens = 60;
  masked.validation_batch_size = 4;
  const std::int64_t batches = masked.make("")->batches().batches_per_epoch();
  masked.batch_tokens = 120;
  EXPECT_NEAR(static_cast<double>(masked.make("")->batches().batches_per_epoch()), static_cast<double>(batches) / 2, 1);
  EXPECT_LT(fit(masked).figure("loss"), 10);
  EmbedSentencesOptions pairs = tiny<EmbedSentencesOptions>("tokens-pairs");
  pairs.batch_tokens = 80;
  EXPECT_GT(fit(pairs).figure("recall_at_1"), 0);
}

TEST_F(TextTasks, LearnClassesOfTexts) {
  ClassifyTextOptions options = tiny<ClassifyTextOptions>("classes");
  options.epochs = 25;
  options.val_share = 0.25;
  const FitResult result = fit(options);
  EXPECT_EQ(result.figure("accuracy"), 100);
  const models::TextModel model = models::load_text_model(result.folder / "best");
  EXPECT_EQ(model.architecture, "BertForSequenceClassification");
  EXPECT_EQ(models::labels_of(model), (std::vector<std::string>{"animal", "weather"}));
  // The folder is fine-tuned further, as another number of classes too.
  options.model = (result.folder / "best").string();
  options.tokenizer = "";
  options.model_kwargs = "{}";
  options.experiment = "more";
  options.epochs = 1;
  options.lr = 0;
  EXPECT_EQ(fit(options).figure("accuracy"), 100);
  options.data = path("tagged.tsv");
  std::ofstream(options.data) << "x\tthe dog\ny\ta cat\nz\tthe rain\nx\ta dog\ny\tcat\nz\train\n";
  options.val_share = 0;
  options.experiment = "three";
  EXPECT_EQ(models::classifier_of(models::load_text_model(fit(options).folder / "last")).num_labels(), 3);
}

TEST_F(TextTasks, LearnLabelsOfWords) {
  TagOptions options = tiny<TagOptions>("tags");
  options.epochs = 30;
  options.val_share = 0.25;
  const FitResult result = fit(options);
  EXPECT_EQ(result.figure("accuracy"), 100);
  EXPECT_TRUE(fs::exists(result.folder / "confusion.svg"));
  EXPECT_EQ(models::labels_of(models::load_text_model(result.folder / "best")),
            (std::vector<std::string>{"OTHER", "VERB"}));
}

// Recurrent networks are classes of a family too, whose config has a rate of dropout of its own.
TEST_F(TextTasks, LearnByRecurrentNetworks) {
  ClassifyTextOptions texts = tiny<ClassifyTextOptions>("recurrent-classes");
  TagOptions words = tiny<TagOptions>("recurrent-tags");
  for (TextTaskOptions* options : {static_cast<TextTaskOptions*>(&texts), static_cast<TextTaskOptions*>(&words)}) {
    options->model = "gru";
    options->model_kwargs = R"({"hidden_size": 16, "num_layers": 1, "bidirectional": true})";
    options->epochs = 25;
    options->lr = 1e-2;
    options->val_share = 0.25;
    EXPECT_EQ(fit(*options).figure("accuracy"), 100) << options->experiment;
  }
  const models::TextModel model = models::load_text_model(path("runs/recurrent-tags/best"));
  EXPECT_EQ(model.architecture, "RecurrentForTokenClassification");
  EXPECT_THAT(model.config, HasSubstr(R"("dropout":0.1)"));
}

// The first token of a word has its label; words that the length cuts off have none.
TEST_F(TextTasks, AlignWordsAndTokens) {
  TagOptions options = tiny<TagOptions>("aligned");
  options.data = path("aligned.txt");
  std::ofstream(options.data) << "sleeps A\nwolves B\ndog A\n\ndog B\n";
  options.val_share = 0;
  options.no_shuffle = true;
  const std::unique_ptr<Task> task = options.make("");
  EXPECT_EQ(task->next()->units, 4);
  options.max_length = 4;  // [CLS], two tokens, [SEP]
  const std::unique_ptr<Task> cut = options.make("");
  EXPECT_LT(cut->next()->units, 4);
  EXPECT_THAT(cut->summary().back(), HasSubstr("lie behind the longest text that the model takes"));
}

TEST_F(TextTasks, LearnVectorsOfPairs) {
  EmbedSentencesOptions options = tiny<EmbedSentencesOptions>("pairs");
  options.val_src = path("a.txt");
  options.val_tgt = path("b.txt");
  options.batch_size = 18;
  options.epochs = 30;
  const FitResult result = fit(options);
  EXPECT_GT(result.figure("recall_at_1"), 90);
  EXPECT_TRUE(models::is_sentence_folder(result.folder / "best"));
  EXPECT_TRUE(models::open_sentence_model((result.folder / "best").string()).normalized);
}

// sentence-transformers' MultipleNegativesRankingLoss and its gradients (tools/golden/sentences.py).
TEST_F(TextTasks, RankPairsAsSentenceTransformers) {
  const fs::path golden = test::golden_path("models/sentences/mean");
  const std::vector<std::string> texts = io::lines_of(text::read_corpus((golden / "texts.txt").string()));
  EmbedSentencesOptions options;
  options.model = golden.string();
  options.src = path("golden_a.txt");
  options.tgt = path("golden_b.txt");
  options.no_shuffle = true;
  options.val_share = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    std::ofstream(options.src, std::ios::app) << texts[i] << "\n";
    std::ofstream(options.tgt, std::ios::app) << texts[i + 4] << "\n";
  }
  const std::unique_ptr<Task> task = options.make("");
  ASSERT_EQ(task->next()->units, 4);
  nn::Pass pass{.training = true};
  autograd::Tape tape;
  const Tensor loss = task->loss(pass);
  const io::Safetensors expected = io::Safetensors::open(golden / "expected.safetensors");
  EXPECT_NEAR(loss.item(), expected.get("ranking_loss").item(), 1e-5);
  tape.backward(loss);
  for (const nn::Parameter& parameter : task->network().parameters.all()) {
    if (expected.contains("grad." + parameter.name)) {
      test::expect_gradient(autograd::grad(parameter.value), expected.get("grad." + parameter.name), 1e-4,
                            parameter.name);
    }
  }
  EXPECT_NEAR(recall_at_1(Tensor::from<float>({1, 0, 0, 1}, {2, 2}), Tensor::from<float>({2, 0, 1, -1}, {2, 2})), 0.5,
              1e-12);
}

TEST_F(TextTasks, LearnMaskedWords) {
  PretrainBertOptions options = tiny<PretrainBertOptions>("masked");
  options.epochs = 1;
  const double before = fit(options).figure("loss");
  options.epochs = 60;
  options.experiment = "masked60";
  options.whole_words = true;
  options.drop = 0;
  const FitResult result = fit(options);
  EXPECT_LT(result.figure("loss"), 0.8 * before);
  EXPECT_EQ(models::load_text_model(result.folder / "best").architecture, "BertForPreTraining");
  options.no_next_sentence = true;
  options.epochs = 1;
  options.model = "distilbert-base-uncased";
  options.model_kwargs = R"({"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 32})";
  options.experiment = "alone";
  EXPECT_EQ(models::load_text_model(fit(options).folder / "best").architecture, "DistilBertForMaskedLM");
}

// With masks that are given, the loss is transformers' (tools/golden/encoders.py).
TEST_F(TextTasks, TakeExamplesThatAreMasked) {
  for (const char* name : {"bert_pretraining", "roberta_masked"}) {
    const fs::path golden = test::golden_path("models/text") / name;
    fs::create_directories(path(name));
    fs::copy(golden, path(name), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    PretrainBertOptions options;
    options.model = path(name);
    std::vector<std::string> letters = {"a"};
    text::TokenizerTraining training;
    training.vocab_size = 6;
    text::train_wordpiece(letters, training).save(options.model);
    options.examples = (golden / "expected.safetensors").string();
    const std::unique_ptr<Task> task = options.make("");
    ASSERT_EQ(task->next()->units, 3);
    nn::Pass pass;
    EXPECT_NEAR(task->loss(pass).item(), io::Safetensors::open(options.examples).get("loss").item(), 1e-5);
    EXPECT_TRUE(task->figures().empty());
  }
}

TEST_F(TextTasks, MaskTokensAsAsked) {
  const text::Tokenizer tokenizer = text::load_tokenizer(path("tokenizer"));
  const MaskingOptions options = masking_of(tokenizer, 0.15, false);
  const std::int64_t cls = *tokenizer.id_of("[CLS]");
  std::vector<std::int64_t> plain;
  for (std::int64_t id = 10; id < 30; ++id) {
    plain.push_back(id);
  }
  plain.insert(plain.begin(), cls);
  std::int64_t chosen = 0;
  std::int64_t masked = 0;
  std::int64_t kept = 0;
  constexpr std::int64_t rounds = 3000;
  for (std::int64_t i = 0; i < rounds; ++i) {
    Draws draws(Philox(3, static_cast<std::uint64_t>(i)));
    std::vector<std::int64_t> ids = plain;
    const std::vector<std::int64_t> labels = mask_tokens(ids, options, draws);
    EXPECT_EQ(labels[0], -100);
    EXPECT_EQ(ids[0], cls);
    for (std::size_t t = 1; t < ids.size(); ++t) {
      if (labels[t] == -100) {
        ASSERT_EQ(ids[t], plain[t]);
        continue;
      }
      ASSERT_EQ(labels[t], plain[t]);
      ++chosen;
      masked += ids[t] == options.mask ? 1 : 0;
      kept += ids[t] == plain[t] ? 1 : 0;
    }
  }
  const auto of = [&](std::int64_t count) { return static_cast<double>(count) / static_cast<double>(chosen); };
  EXPECT_NEAR(static_cast<double>(chosen) / (20.0 * rounds), 0.15, 0.01);
  EXPECT_NEAR(of(masked), 0.8, 0.02);
  EXPECT_NEAR(of(kept), 0.1, 0.02);
  // Whole words: all tokens of a word are chosen, or none.
  MaskingOptions words = masking_of(tokenizer, 0.3, true);
  words.continues.assign(words.continues.size(), false);
  words.continues[11] = words.continues[12] = true;
  for (std::int64_t i = 0; i < 200; ++i) {
    Draws draws(Philox(4, static_cast<std::uint64_t>(i)));
    std::vector<std::int64_t> ids = {cls, 10, 11, 12, 13};
    const std::vector<std::int64_t> labels = mask_tokens(ids, words, draws);
    EXPECT_EQ(labels[1] == -100, labels[2] == -100);
    EXPECT_EQ(labels[1] == -100, labels[3] == -100);
  }
}

TEST_F(TextTasks, MakeExamplesOfDocuments) {
  const text::Tokenizer tokenizer = text::load_tokenizer(path("tokenizer"));
  BertExampleOptions how{
      .max_length = 12, .next_sentence = true, .cls = 1, .sep = 2, .masking = masking_of(tokenizer, 0.15, false)};
  how.masking.special.assign(how.masking.special.size(), true);  // so that nothing is masked
  const BertExamples examples({{{10, 11}, {12}, {13, 14}}, {{20, 21, 22, 23, 24, 25, 26, 27, 28, 29}}}, how);
  ASSERT_EQ(examples.count(), 2);
  std::int64_t follows = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const BertExample example = examples.draw(0, Draws(Philox(1, i)));
    EXPECT_LE(example.text.size(), 12);
    EXPECT_EQ(example.text.ids.front(), 1);
    EXPECT_EQ(example.text.ids.back(), 2);
    EXPECT_EQ(std::ranges::count(example.text.ids, 2), 2);
    EXPECT_EQ(example.text.types.back(), 1);
    const bool from_other = example.text.ids[example.text.ids.size() - 2] >= 20;
    EXPECT_EQ(from_other, example.not_next == 1);
    follows += example.not_next == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(follows), 200, 50);
  EXPECT_EQ(examples.draw(1, Draws(Philox(1, 1))).not_next, 1);  // a single sentence has no second part
  EXPECT_THAT(error_of([&] { BertExamples({{{10}}}, how); }), HasSubstr("there is one document alone"));
}

TEST_F(TextTasks, SayWhatCannotBe) {
  const auto error = [](auto options, auto&& change) {
    change(options);
    return error_of([&] { options.make(""); });
  };
  const ClassifyTextOptions classes = tiny<ClassifyTextOptions>("x");
  EXPECT_THAT(error(classes, [](auto& o) { o.tokenizer = ""; }),
              HasSubstr("--tokenizer is missing: a new model has none"));
  EXPECT_THAT(error(classes,
                    [&](auto& o) {
                      o.data = path("one.tsv");
                      std::ofstream(o.data) << "a\tb\na\tc\n";
                    }),
              HasSubstr("one.tsv: all texts have the label 'a': there is nothing to tell apart"));
  EXPECT_THAT(error(classes, [](auto& o) { o.model_kwargs = R"({"vocab_size": 7})"; }),
              HasSubstr("but the model knows 7"));
  EXPECT_THAT(error(classes, [](auto& o) { o.max_length = 600; }),
              HasSubstr("--max-length 600 is more than the 32 positions of the model"));
  EXPECT_THAT(error(classes,
                    [&](auto& o) {
                      o.val_data = path("other.tsv");
                      std::ofstream(o.val_data) << "plant\ta tree\n";
                    }),
              HasSubstr("other.tsv: the label 'plant' is none of the 2 that are known"));
  EXPECT_THAT(error(classes, [](auto& o) { o.model = "llama-3.2-1b"; }),
              HasSubstr("of llama there is no ForSequenceClassification, only 'LlamaForCausalLM'"));
  const EmbedSentencesOptions pairs = tiny<EmbedSentencesOptions>("x");
  EXPECT_THAT(error(pairs,
                    [&](auto& o) {
                      o.tgt = path("short.txt");
                      std::ofstream(o.tgt) << "one\n";
                    }),
              HasSubstr("a.txt' has 36 lines, but '" + path("short.txt") + "' has 1: line 2 of '" + path("a.txt") +
                        "' has no"));
  EXPECT_THAT(error(tiny<PretrainBertOptions>("x"), [](auto& o) { o.tokenizer = path("labelled.tsv"); }),
              HasSubstr("labelled.tsv"));
}

TEST_F(TextTasks, ShareTheirEvaluations) {
  const auto expect_shared = []<class Options>(Options options, const std::string& name) {
    options.output = path(name);
    test::expect_shared_evaluations(options);
  };
  expect_shared(tiny<ClassifyTextOptions>(""), "classes");
  expect_shared(tiny<TagOptions>(""), "tags");
  expect_shared(tiny<EmbedSentencesOptions>(""), "sentences");
  expect_shared(tiny<PretrainBertOptions>(""), "masked");
}

}  // namespace
}  // namespace vitrail::train
