"""Times PyTorch on what BenchmarkTrainStep and BenchmarkInfer measure: width 16, 32x32, batch 64."""
import time

import torch

from pytorch import ResNet18, loss_of

BATCH, WARM, STEPS = 64, 3, 15


def rate(step):
    for _ in range(WARM):
        step()
    start = time.time()
    for _ in range(STEPS):
        step()
    return STEPS * BATCH / (time.time() - start)


for layout in (torch.contiguous_format, torch.channels_last):
    net = ResNet18(5, 16).to(memory_format=layout)
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=5e-4)
    x = torch.randn(BATCH, 3, 32, 32).to(memory_format=layout)
    labels = torch.arange(BATCH) % 5

    def train():
        opt.zero_grad()
        loss_of(net(x)[0], labels).backward()
        opt.step()

    @torch.no_grad()
    def score():
        net(x)

    print(f"PyTorch {layout}: training {rate(train):.0f} images/s", end=", ")
    net.eval()
    print(f"scoring {rate(score):.0f} images/s")
