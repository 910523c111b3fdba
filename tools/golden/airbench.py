"""Writes tests/golden/models/airbench, airbench_table.csv and tests/golden/airbench.safetensors.

    python tools/golden/airbench.py FILE

FILE is legacy/airbench94.py of github.com/KellerJordan/cifar10-airbench at f1c599c, whose own network, whitening, alternating
flip, test-time augmentation and training loop are run, on the CPU in float32, narrow and on 32 images.

airbench.safetensors: images [32, 3, 32, 32] u8, labels, the filters of whitened patches and their eigenvalues, which images the
loader flips in four epochs, probabilities by test-time augmentation for the network tta.NAME, and a training run: start.NAME,
end.NAME, the batches in order, losses (means) and learning rates of twelve steps.
"""

import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from timm_models import ROOT, perturb, rounding, write_reference

WIDTHS = {"block1": 12, "block2": 16, "block3": 20}
BATCH, EPOCHS = 16, 6

# The reference runs in half precision on a GPU.
torch.Tensor.cuda = lambda self, *_, **__: self
torch.Tensor.half = torch.Tensor.float
torch.nn.Module.cuda = lambda self, *_, **__: self
torch.nn.Module.half = torch.nn.Module.float
torch.cuda.synchronize = lambda: None


class Event:
    def __init__(self, **_):
        pass

    def record(self):
        pass

    def elapsed_time(self, _):
        return 0.0


torch.cuda.Event = Event


def reference(path):
    scope = {"__name__": "airbench94"}
    exec(compile(pathlib.Path(path).read_text(), path, "exec"), scope)
    return scope


def photographs(count):
    """Images with neighbouring pixels alike, so that there is something to whiten."""
    generator = torch.Generator().manual_seed(5)
    noise = torch.rand(count, 3, 8, 8, generator=generator)
    smooth = torch.nn.functional.interpolate(noise, size=32, mode="bicubic")
    return ((smooth + 0.1 * torch.rand(count, 3, 32, 32, generator=generator)).clamp(0, 1) * 255).byte()


class Loader:
    """Batches that stay the same in every run, with what the reference asks of its CifarLoader."""

    def __init__(self, module, images, labels, batches):
        self.images = images.float() / 255
        self.labels = labels
        self.normalize = module["T"].Normalize(module["CIFAR_MEAN"], module["CIFAR_STD"])
        self.batches = batches
        self.epoch = 0

    def __len__(self):
        return len(self.images) // BATCH

    def __iter__(self):
        for index in self.batches[self.epoch]:
            yield self.normalize(self.images[index]), self.labels[index]
        self.epoch += 1


def network(module):
    """make_net() of the reference, which the file alone makes at the size of hyp['net']."""
    return module["make_net"]()


def training(module, images, labels, tensors):
    generator = torch.Generator().manual_seed(6)
    batches = [torch.randperm(len(images), generator=generator).view(-1, BATCH) for _ in range(EPOCHS)]
    loader = Loader(module, images, labels, batches)
    made, losses, rates = [], [], []
    make_net, optimizer = module["make_net"], torch.optim.SGD

    def start():
        torch.manual_seed(7)
        model = make_net()
        # Before lookahead copies it: over so few steps it would mix the filters from before the whitening in.
        module["init_whitening_conv"](model[0], loader.normalize(loader.images))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name and name.endswith("bias"):
                    parameter.normal_(0, 0.1)
                elif name == "0.bias":
                    parameter.normal_(0, 0.1)
                elif "conv" in name:
                    parameter.add_(torch.randn_like(parameter) * 0.02)
        made.append(model)
        tensors.update({f"start.{key}": value.clone() for key, value in model.state_dict().items()})
        return model

    class CrossEntropy(torch.nn.CrossEntropyLoss):
        def forward(self, *arguments):
            each = super().forward(*arguments)
            losses.append(each.detach().mean())
            return each

    class SGD(optimizer):
        def step(self, *arguments):
            rates.append(torch.tensor(self.param_groups[1]["lr"] * BATCH))  # for the mean loss
            return super().step(*arguments)

    module["hyp"]["opt"].update(batch_size=BATCH, train_epochs=EPOCHS)
    module["make_net"] = start
    module["evaluate"] = lambda *_, **__: 0.0
    module["CifarLoader"] = lambda *_, **__: loader
    module["print_training_details"] = lambda *_, **__: None
    module["nn"].CrossEntropyLoss, torch.optim.SGD = CrossEntropy, SGD
    module["main"](0)
    tensors.update({f"end.{key}": value for key, value in made[0].state_dict().items()})
    tensors["losses"], tensors["rates"] = torch.stack(losses), torch.stack(rates)
    tensors["batches"] = torch.stack([index for epoch in batches for index in epoch])


def flips(module, images, labels):
    """Which images the reference's loader flips in four epochs."""
    loader = module["CifarLoader"].__new__(module["CifarLoader"])
    loader.images = images.float() / 255
    loader.labels = labels
    loader.normalize = module["T"].Normalize(module["CIFAR_MEAN"], module["CIFAR_STD"])
    loader.proc_images, loader.epoch, loader.aug = {}, 0, {"flip": True}
    loader.batch_size, loader.drop_last, loader.shuffle = len(images), True, False
    plain = loader.normalize(loader.images)
    epochs = [next(iter(loader))[0] for _ in range(4)]
    return torch.stack([(epoch != plain).flatten(1).any(1).long() for epoch in epochs])


def main(path):
    module = reference(path)
    module["hyp"]["net"]["widths"] = dict(zip(WIDTHS, (64, 256, 256)))
    torch.manual_seed(0)
    full = module["make_net"]()
    module["hyp"]["net"]["widths"] = WIDTHS
    arguments = {"widths": list(WIDTHS.values()), "num_classes": 10}
    torch.manual_seed(1)
    small = network(module)
    # The fixture's head lies where write_reference() looks for it; the reference calls it 7.
    names = ["2", "3", "4"]
    layers = {"0": 0, "2": 1, "3": 2, "4": 3, "7": 4}
    small.__dict__["head"] = small[7]
    write_reference("airbench", "airbench94", arguments, small, 1, (4, 3, 32, 32), [small[int(n)] for n in names],
                    lambda key: layers[key.split(".")[0]])
    trainable = sum(p.numel() for p in full.parameters() if p.requires_grad)
    (ROOT / "airbench_table.csv").write_text(table(full, trainable))
    fix_facts(small)
    add_rounding(small)

    torch.manual_seed(2)
    images = photographs(32)
    labels = torch.randint(0, 10, (32,), generator=torch.Generator().manual_seed(3))
    tensors = {"images": images, "labels": labels}
    probe = network(module)
    patches = module["get_patches"](Loader(module, images, labels, []).normalize(images.float() / 255), (2, 2))
    values, _ = module["get_whitening_parameters"](patches)
    module["init_whitening_conv"](probe[0], Loader(module, images, labels, []).normalize(images.float() / 255))
    tensors["eigenvalues"], tensors["filters"] = values.flatten(), probe[0].weight.detach().clone()
    tensors["flips"] = flips(module, images, labels)
    perturb(probe, 4)
    tensors.update({f"tta.{key}": value.clone() for key, value in probe.state_dict().items()})
    for level in (0, 1, 2):
        logits = module["infer"](probe, Loader(module, images, labels, []), level)
        tensors[f"probabilities.{level}"] = logits.softmax(1)
    training(module, images, labels, tensors)
    save_file({key: value.detach().contiguous() for key, value in tensors.items()}, ROOT.parent / "airbench.safetensors")


def table(full, trainable):
    """As write_table() does, but for images of the network's own size and a head of 1000 classes; what is frozen counts
    as no parameter."""
    from fvcore.nn import FlopCountAnalysis

    def padded_by_name(inputs, outputs):  # fvcore passes over convolutions whose padding is "same"
        shape, weight = outputs[0].type().sizes(), inputs[1].type().sizes()
        return shape[2] * shape[3] * math.prod(weight)

    full[7] = torch.nn.Linear(256, 1000, bias=False)
    analysis = FlopCountAnalysis(full.eval(), torch.zeros(1, 3, 32, 32))
    analysis.set_op_handle("aten::_convolution_mode", padded_by_name)
    flops = int(analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).total())
    return f"name,parameters,flops,num_features,num_classes\nairbench94,{trainable + 990 * 256},{flops},256,1000\n"


def add_rounding(small):
    """rounding() in expected.safetensors."""
    path = ROOT / "airbench/expected.safetensors"
    fixture = load_file(path)
    fixture["bf16"] = rounding(small, fixture).float()
    save_file(fixture, path)


def fix_facts(small):
    """What is frozen counts as no parameter, and the images have the network's own size."""
    path = ROOT / "airbench/facts.json"
    facts = json.loads(path.read_text())
    facts["parameters"] = sum(p.numel() for p in small.parameters() if p.requires_grad)
    path.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
