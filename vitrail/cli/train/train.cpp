// The commands `vitrail train` and `vitrail pretrain`, which fit a network to data, with labels and without.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/option_flags.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/say_why.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/data/sets/sets.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/run_copy.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/trainer.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::cli {
namespace {

// Whether one of the arguments is a file whose name ends so, and no table of images.
bool names_file(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return argument.ends_with(ending); }) &&
           io::is_file(argument) && !data::is_table_of_images(argument);
  });
}

// The task on texts that model and data leave no choice about; "" if they are about images, or leave one.
std::string text_task(const std::vector<std::string>& arguments) {
  const bool pairs = !value_of(arguments, "--src").empty() || !value_of(arguments, "--tgt").empty();
  const bool labels = names_file(arguments, {".tsv", ".jsonl", ".csv"});
  if (names_file(arguments, {".conll"})) {
    return "tag";
  }
  const std::string model = train::model_of(value_of(arguments, "--model")).string();
  if (model.empty() || !models::names_text_model(model)) {
    return names_file(arguments, {".tsv", ".jsonl"}) ? "classify-text" : "";
  }
  const models::TextModel opened = models::open_text_model(model, {.fill = nn::Fill::meta});
  if (opened.net->translator() != nullptr) {
    return "translate";
  }
  if (opened.name.starts_with("imagegpt")) {
    return "pixels";
  }
  if (pairs) {
    return "embed";
  }
  return opened.net->language() != nullptr && !labels ? "lm" : "classify-text";
}

// The kind of task of a command line, which decides what flags there are: the one named by --task, or as the method of
// `vitrail pretrain`; else that of the run which is resumed or whose options are taken; else the default of the
// command.
const train::TaskKind& task_of(std::string_view command, const std::vector<std::string>& arguments) {
  const std::vector<const train::TaskKind*> kinds = train::task_kinds_of(command);
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(kinds, [&](const train::TaskKind* kind) { return kind->name == name; });
  };
  if (arguments.empty() || arguments.front() != command) {
    return *kinds.front();
  }
  const std::string task = value_of(arguments, "--task");
  const bool resumes = !value_of(arguments, "--resume").empty() || !value_of(arguments, "--config").empty();
  if (command == "train" && task.empty() && !resumes && std::ranges::any_of(arguments, [](const std::string& word) {
        return data::is_set_source(word) || data::is_file_of_sets(word);
      })) {
    return train::task_kind("set2set");
  }
  if (command == "train" && (task == "classify" || (task.empty() && !resumes))) {
    const std::string on_texts = text_task(arguments);
    check(task.empty() || on_texts != "tag", "a .conll has words with labels, which --task tag learns, not classify");
    check(task.empty() || !on_texts.empty() || arguments.size() < 2 || !names_file({arguments[1]}, {".txt"}),
          "a .txt has texts, which --task lm learns, or with labels classify-text, and classify images");
    if (!on_texts.empty()) {
      return train::task_kind(task.empty() ? on_texts : "classify-text");
    }
    const std::string model = value_of(arguments, "--model");
    if (task.empty() && models::is_detector_name(model)) {
      return train::task_kind("detect");
    }
    if (task.empty() && models::is_vqa_name(model)) {
      return train::task_kind("vqa");
    }
  }
  if (const auto kind = named(task); kind != kinds.end()) {
    return **kind;
  }
  if (const auto kind = named(arguments.size() > 1 ? arguments[1] : ""); command == "pretrain" && kind != kinds.end()) {
    return **kind;
  }
  for (const char* flag : {"--resume", "--config", "-c"}) {
    const std::filesystem::path run = value_of(arguments, flag);
    if (run.empty() || !std::filesystem::exists(run)) {
      continue;
    }
    const train::TaskKind& kind = train::task_kind_of_run(run);
    check(kind.command == command, "'{}' is a run of `vitrail {}`", run.string(), kind.command);
    return kind;
  }
  return *kinds.front();
}

// The names of the tasks of a command.
std::vector<std::string> names_of(const std::string& command) {
  std::vector<std::string> names;
  for (const train::TaskKind* kind : train::task_kinds_of(command)) {
    names.emplace_back(kind->name);
  }
  return names;
}

// The flags of one kind of task, and its options by them.
class TaskFlags {
 public:
  TaskFlags(CLI::App& command, const train::TaskKind& kind) : kind_(kind), flags_(command) {
    const std::unique_ptr<train::TaskOptions> defaults = kind.defaults();
    train::OptionList list;
    defaults->describe(list);
    flags_.add_all(list);
    command
        .add_option("-c,--config", config_,
                    "Take what is not given here from the config.toml of another run, or from its folder")
        ->type_name("PATH")
        ->group("Run");
    add_dtype_flag(command, dtype_);
  }

  // The options: values of the command line override those of --config or of the run that is resumed, and these
  // override the defaults. `run` is where this rank reads the run of --resume, if not in the folder that is named.
  std::unique_ptr<train::TaskOptions> options(const std::string& run = "") const {
    const std::string resumed = run.empty() ? flags_.given("resume") : run;
    check_usage(config_.empty() || resumed.empty(),
                "--config and --resume exclude each other: a run that is resumed has its own config.toml");
    std::unique_ptr<train::TaskOptions> options = kind_.defaults();
    if (!resumed.empty()) {
      train::resume(resumed, *options);
    } else if (!config_.empty()) {
      const std::filesystem::path given = config_;
      const bool is_run = std::filesystem::is_directory(given);
      train::read_config(is_run ? train::run_folder_of(given) / "config.toml" : given, *options);
    }
    const std::string resume = options->resume;
    train::OptionList list;
    options->describe(list);
    train::Option* classes = list.find("num_classes");
    const bool classes_of_data = classes != nullptr && std::holds_alternative<std::monostate>(classes->get());
    as_usage([&] {
      flags_.apply(list);
      if (!dtype_.empty()) {
        options->amp = dtype_named(dtype_) == DType::bf16;
        options->amp_dtype = options->amp ? "bfloat16" : options->amp_dtype;
      }
      train::validate(*options);
      flags_.check_effects(list);
    });
    options->resume = resume;  // the run folder, even if the folder of a checkpoint was given
    if (!resumed.empty()) {
      const std::filesystem::path config = std::filesystem::path(resume) / "config.toml";
      if (classes_of_data && train::option_text(classes->get()) == train::read_facts(config)["classes"]) {
        classes->set({});  // the number that the data gave
      }
      train::changed_options(config, *options);  // before anything is loaded into a network that cannot hold it
      check_data(list, *options, flags_.given("resume"));
    }
    return options;
  }

 private:
  // Throws Error if the data of a run that goes on, which the user has named so, have moved.
  static void check_data(const train::OptionList& list, const train::TaskOptions& options, const std::string& run) {
    for (const train::Option& option : list.all()) {
      const std::string path = option.positional.empty() ? "" : std::get<std::string>(option.get());
      std::error_code error;
      check(path.empty() || !data::is_one_path(path) || std::filesystem::exists(path, error),
            "'{}', with the data of the run '{}', is not there: name them again by {} {} --resume {}", path, run,
            options.command(), option.positional, io::shell_word(run));
    }
  }

  const train::TaskKind& kind_;
  OptionFlags flags_;
  std::string config_;
  std::string dtype_;
};

// Says what this rank alone has failed of, and ends all: the others would wait for it.
void end_all(dist::Communicator& ranks, const std::exception& error) {
  say_why("vitrail", error.what());
  ranks.abort();
}

// The ranks that go on with a run, of which this process is one. They start before there are flags, which are those of
// the run's task, and the run may lie on the machine of rank 0 alone.
class ResumingRanks {
 public:
  ResumingRanks(std::string_view command, const std::vector<std::string>& arguments) {
    const std::string run = value_of(arguments, "--resume");
    const bool resumes = !run.empty() && arguments.front() == command && dist::announced_ranks() > 1;
    if (!resumes) {
      kind_ = &task_of(command, arguments);
      return;
    }
    const double seconds = seconds_to_wait(run, value_of(arguments, "--comm-timeout"));
    ranks_ = dist::started_ranks(seconds);
    ranks_->timeout = seconds;
    ranks_->stopping = train::Interrupt::requested;
    const train::Interrupt interrupt;
    try {
      copy_.emplace(*ranks_, run, [](const std::string& note) { say("{}\n", note); });
      std::vector<std::string> own = arguments;
      own.insert(own.end(), {"--resume", folder()});
      kind_ = &task_of(command, own);
    } catch (const std::exception& error) {
      loaded();
      end_all(*ranks_, error);
    }
  }
  ~ResumingRanks() {
    if (ranks_) {  // the command line was refused, perhaps on this rank alone: MPI would wait for the others
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        std::_Exit(usage_status);
      }).detach();
    }
  }
  ResumingRanks(const ResumingRanks&) = delete;
  ResumingRanks& operator=(const ResumingRanks&) = delete;

  const train::TaskKind& kind() const { return *kind_; }
  // What the flags say, of the run that this rank reads. What they all fail of is thrown.
  std::unique_ptr<train::TaskOptions> options(const TaskFlags& flags) {
    std::unique_ptr<train::TaskOptions> options;
    std::exception_ptr failed;
    bool is_usage = false;
    std::string why;
    try {
      options = flags.options(folder());
    } catch (const std::exception& error) {
      failed = std::current_exception();
      is_usage = dynamic_cast<const CLI::Error*>(&error) != nullptr;
      why = error.what();
      loaded();
    }
    if (ranks_) {
      const std::vector<std::string> all = dist::all_gather(*ranks_, failed ? "failed" : "", "the start");
      if (failed && std::ranges::count(all, "failed") < std::ssize(all)) {
        end_all(*ranks_, Error(why));
      }
    }
    if (failed && ranks_ && ranks_->rank() > 0) {
      throw CLI::RuntimeError(is_usage ? usage_status : EXIT_FAILURE);  // rank 0 says why
    }
    if (failed) {
      std::rethrow_exception(failed);
    }
    return options;
  }
  // The ranks, which start now if they have not yet.
  std::unique_ptr<dist::Communicator> take_ranks(double timeout) {
    return ranks_ ? std::move(ranks_) : dist::started_ranks(timeout);
  }
  void loaded() {
    if (copy_) {
      copy_->remove();
    }
  }

 private:
  std::string folder() const { return copy_ ? copy_->folder().string() : ""; }

  // How long a rank waits for others: as the flag says, or the run, where it lies here.
  static double seconds_to_wait(const std::string& run, const std::string& flag) {
    double seconds = std::strtod(flag.c_str(), nullptr);
    if (!(seconds > 0)) {
      seconds = train::RunOptions().comm_timeout;
      try {
        const std::unique_ptr<train::TaskOptions> options = train::task_kind_of_run(run).defaults();
        train::resume(run, *options);
        seconds = options->comm_timeout;
      } catch (const std::exception&) {  // it lies elsewhere, or is refused when its options are asked for
        return seconds;
      }
    }
    return seconds;
  }

  const train::TaskKind* kind_ = nullptr;
  std::unique_ptr<dist::Communicator> ranks_;
  std::optional<train::RunCopy> copy_;
};

using Log = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// The file that rank `rank` of several reports to, by --all-ranks-log; null: none.
Log log_of_rank(int rank, const std::string& folder) {
  Log log(nullptr, &std::fclose);
  if (rank > 0 && !folder.empty()) {
    io::make_folder(folder);
    const std::string path = fmt::format("{}/rank-{}.log", folder, rank);
    log.reset(std::fopen(path.c_str(), "a"));
    check(log != nullptr, "--all-ranks-log: cannot write '{}'", path);
    std::setvbuf(log.get(), nullptr, _IOLBF, BUFSIZ);
  }
  return log;
}

// Whether a task learns from images without labels, so that its encoder is what others go on with.
bool learns_images_alone(const std::string& kind) {
  return kind == "mae" || kind == "simclr" || kind == "mocov3" || kind == "dino" || kind == "autoencoder";
}

void fit_on(dist::Communicator& ranks, const train::TaskOptions& options, ResumingRanks& resuming) {
  const train::Interrupt interrupt;
  const Log log = log_of_rank(ranks.rank(), options.all_ranks_log);
  train::Progress progress(log ? log.get() : stdout);
  progress.set_interval(options.log_interval);
  train::FitHooks hooks;
  hooks.should_stop = train::Interrupt::requested;
  hooks.progress = log || ranks.rank() == 0 ? &progress : nullptr;
  hooks.ranks = &ranks;
  hooks.on_loaded = [&resuming] { resuming.loaded(); };
  const train::FitResult result = train::fit(options, hooks);
  if (result.stopped) {
    // The exit status tells a shell, as in `vitrail train … && …`, that the run was stopped.
    throw CLI::RuntimeError(128 + std::max(train::Interrupt::signal(), 0));
  }
  if (hooks.progress != nullptr && learns_images_alone(options.kind())) {
    progress.line(
        fmt::format("next: `vitrail encoder {0} --output encoder`, which train, embed, index and attention "
                    "take as their model; docs/latent.md shows what it has learnt",
                    io::shell_word(result.folder.string())));
  }
}

// Trains as the flags say, on the ranks that were started.
void run_training(const TaskFlags& flags, ResumingRanks& resuming) {
  const std::unique_ptr<train::TaskOptions> options = resuming.options(flags);
  const std::unique_ptr<dist::Communicator> ranks = resuming.take_ranks(options->comm_timeout);
  try {
    fit_on(*ranks, *options, resuming);
  } catch (const dist::AgreedError& error) {
    if (ranks->size() == 1) {
      throw;
    }
    if (ranks->rank() == 0) {
      say("vitrail: {}\n", error.what());
    }
    throw CLI::RuntimeError(agreed_status);
  } catch (const CLI::RuntimeError&) {
    throw;  // a status that fit_on() has chosen
  } catch (const std::exception& error) {
    if (ranks->size() == 1) {
      throw;
    }
    resuming.loaded();
    end_all(*ranks, error);
  }
}

}  // namespace

void add_train(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App& command = *app.add_subcommand("train", "Train or fine-tune a model on images or texts");
  const auto task = std::make_shared<std::string>(train::task_kinds_of("train").front()->name);
  command.add_option("--task", *task, fmt::format("What is learned: {}", fmt::join(names_of("train"), ", ")))
      ->type_name("NAME")
      ->capture_default_str()
      ->check(CLI::IsMember(names_of("train")));
  const auto resuming = std::make_shared<ResumingRanks>("train", arguments);
  const auto flags = std::make_shared<TaskFlags>(command, resuming->kind());
  add_examples(
      command,
      {"# photos/train/cat/1.jpg, photos/validation/dog/7.png …; a .tar of that, CIFAR and MNIST files, a .csv work "
       "too",
       "vitrail train photos --model vit_tiny_patch16_224 --epochs 50", "# small images, in bf16",
       "vitrail train data/cifar10 --val-split test --amp --model-kwargs img_size=32 patch_size=4 --train-crop-mode "
       "pad",
       "# fine-tune a folder saved by timm", "vitrail train photos --model my_model --layer-decay 0.75 --lr 5e-4",
       "# classes of texts (label<TAB>text a line), labels of words, vectors of sentences",
       "vitrail train reviews.tsv --model my_bert", "vitrail train names.conll --task tag --model my_bert",
       "vitrail train --task embed --src a.txt --tgt b.txt --model my_minilm",
       "# go on with a run that was stopped by Ctrl-C or a power cut", "vitrail train --resume output/train/NAME"});
  const bool of_a_text = value_of(arguments, "--task").empty() && value_of(arguments, "--resume").empty() &&
                         value_of(arguments, "--config").empty() && value_of(arguments, "-c").empty() &&
                         value_of(arguments, "--model").empty() && names_file(arguments, {".txt"});
  command.callback([flags, resuming, task, of_a_text] {
    check_usage(!of_a_text,
                "of a text, say what is learned: --task lm, its next token; classify-text, tag, embed and translate "
                "take texts in other forms");
    run_training(*flags, *resuming);
  });
}

void add_pretrain(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App& command = *app.add_subcommand("pretrain", "Train a model on images or texts without labels");
  const std::vector<std::string> methods = names_of("pretrain");
  const auto method = std::make_shared<std::string>(methods.front());
  const auto resuming = std::make_shared<ResumingRanks>("pretrain", arguments);
  const train::TaskKind& kind = resuming->kind();
  command
      .add_option("METHOD", *method,
                  fmt::format("How it learns: one of {}; here {}, {}", fmt::join(methods, ", "), kind.name, kind.help))
      ->type_name("")
      ->check(CLI::IsMember(methods));
  const auto flags = std::make_shared<TaskFlags>(command, kind);
  add_examples(command,
               {"# any folder of images; then fine-tune what has been learned, or train a head on it alone",
                "vitrail pretrain mae photos --model vit_small_patch16_224 --epochs 200 --amp",
                "vitrail train labelled --model output/train/NAME/best --layer-decay 0.75",
                "vitrail train labelled --model output/train/NAME/best --linear-probe", "# what it makes of images",
                "vitrail reconstruct output/train/NAME/best photos --output sheet.png",
                "# by comparing views of images, or by a teacher; then the encoder by itself",
                "vitrail pretrain mocov3 photos --model vit_tiny_patch16_224 --epochs 100 --knn-data labelled",
                "vitrail pretrain dino photos --model vit_tiny_patch16_224 --out-dim 4096 --epochs 100",
                "vitrail encoder output/train/NAME --output encoder",
                "# sentences, one a line, with blank lines between documents",
                "vitrail pretrain bert book.txt --model bert-mini --tokenizer my_wordpieces",
                "# go on with a run that was stopped", "vitrail pretrain --resume output/train/NAME"});
  command.callback([flags, resuming, method] { run_training(*flags, *resuming); });
}

}  // namespace vitrail::cli
