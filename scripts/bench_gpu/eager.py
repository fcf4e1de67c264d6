"""Times the same training in eager PyTorch on the GPU: prints a line of JSON for each precision.

Images lie on the device as bytes, as in Winnow; a batch is gathered, cropped, mirrored and
normalised there. Some hundred steps are timed and the round's time is worked out from them.
"""
import argparse
import json
import time

import torch

from pytorch import ResNet18

parser = argparse.ArgumentParser()
parser.add_argument("--labeled", type=int, default=10_000)
parser.add_argument("--knowns", type=int, default=4_000, help="of the labeled, for the classifier")
parser.add_argument("--pool", type=int, default=50_000)
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--size", type=int, default=32)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--warm", type=int, default=30)
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
PAD = 4


def sync():
    if args.device == "cuda":
        torch.cuda.synchronize()


def seconds(step, steps):
    for _ in range(args.warm):
        step()
    sync()
    start = time.time()
    for _ in range(steps):
        step()
    sync()
    return (time.time() - start) / steps


def normalised(images):
    return images.permute(0, 3, 1, 2).float().div_(255).sub_(0.5).div_(0.25).contiguous(memory_format=torch.channels_last)


def augmented(images):
    """A random crop of the images padded with black, and a random mirror, image by image."""
    n, size = images.shape[:2]
    padded = torch.nn.functional.pad(images, (0, 0, PAD, PAD, PAD, PAD))
    line = torch.arange(size, device=images.device)
    across = torch.where(torch.rand(n, 1, device=images.device) < 0.5, line, size - 1 - line)
    y = line + torch.randint(0, 2 * PAD + 1, (n, 1), device=images.device)
    x = across + torch.randint(0, 2 * PAD + 1, (n, 1), device=images.device)
    return padded[torch.arange(n, device=images.device)[:, None, None], y[:, :, None], x[:, None, :]]


def measure(precision):
    if args.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "f32"
        torch.backends.cudnn.benchmark = True
    half = torch.autocast(args.device, dtype=torch.bfloat16, enabled=precision == "bf16")
    images = torch.randint(0, 256, (args.labeled, args.size, args.size, 3), dtype=torch.uint8, device=args.device)
    labels = torch.arange(args.labeled, device=args.device) % 5
    net = ResNet18(5, args.width).to(args.device).to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=5e-4)

    def train():
        chosen = torch.randint(0, args.labeled, (args.batch,), device=args.device)
        with half:
            logits = net(normalised(augmented(images[chosen])))[0]
        opt.zero_grad(set_to_none=True)
        energy_loss(logits.float(), labels[chosen]).backward()
        opt.step()

    net.train()
    step = seconds(train, args.steps)
    net.eval()

    @torch.no_grad()
    def score():
        with half:
            net(normalised(images[:512]))

    scored = min(512, args.labeled) / seconds(score, max(args.steps // 10, 1))
    steps = args.epochs * sum(-(-n // args.batch) for n in (args.labeled, args.knowns))
    return {
        "eager": "PyTorch " + torch.__version__, "device": args.device, "precision": precision,
        "train_steps_per_s": 1 / step, "train_images_per_s": args.batch / step, "score_images_per_s": scored,
        "steps": steps, "train_s": steps * step, "score_s": 2 * args.pool / scored,
    }


def energy_loss(logits, labels):
    """The loss of pytorch.py without the branches on the data, which would wait for the device."""
    loss = torch.nn.functional.cross_entropy(logits, labels)
    c = logits.shape[1] - 1
    energy = -torch.logsumexp(logits[:, :c], 1)
    known = (labels < c).float()
    loss = loss + 0.01 * (known * torch.relu(energy + 25) ** 2).sum() / known.sum().clamp(min=1)
    return loss + 0.01 * ((1 - known) * torch.relu(-7 - energy) ** 2).sum() / (1 - known).sum().clamp(min=1)


if __name__ == "__main__":
    for precision in ("f32", "tf32", "bf16") if args.device == "cuda" else ("f32",):
        print(json.dumps(measure(precision)), flush=True)
