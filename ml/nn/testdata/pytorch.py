"""Records what PyTorch makes of two training steps: see README.md."""
import json
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, inp, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, outputs, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inp = width
        for stage in range(4):
            out = width << stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(
                Block(inp, out, 1 if stage == 0 else 2), Block(out, out, 1)))
            inp = out
        self.linear = nn.Linear(inp, outputs)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        for stage in range(4):
            y = getattr(self, f"layer{stage + 1}")(y)
        y = y.mean((2, 3))
        return self.linear(y), y


def loss_of(logits, labels, weight=0.01, known=-25.0, unknown=-7.0):
    loss = F.cross_entropy(logits, labels)
    c = logits.shape[1] - 1
    energy = -torch.logsumexp(logits[:, :c], 1)
    k = labels < c
    if k.any():
        loss = loss + weight * (F.relu(energy[k] - known) ** 2).mean()
    if (~k).any():
        loss = loss + weight * (F.relu(unknown - energy[~k]) ** 2).mean()
    return loss


def numbers(n, salt):
    """n numbers in [-1, 1): a multiplicative hash, the same in every language."""
    i = np.arange(n, dtype=np.uint64)
    u = (i * np.uint64(2654435761) + np.uint64(salt * 40503 + 12345)) % np.uint64(2**32)
    u = (u ^ (u >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(2**32)
    return u.astype(np.float64) / 2**31 - 1


def ohwi(t):
    """Weights with the input channels last, as Winnow keeps them."""
    return t.permute(0, 2, 3, 1) if t.dim() == 4 else t


def record(name, size, batch, width, outputs):
    torch.set_default_dtype(torch.float64)
    net = ResNet18(outputs, width)
    with torch.no_grad():
        for salt, (key, p) in enumerate(net.named_parameters()):
            n = numbers(p.numel(), salt)
            if p.dim() == 4:
                o, i, kh, kw = p.shape
                w = torch.from_numpy(n / np.sqrt(i * kh * kw)).reshape(o, kh, kw, i)
                p.copy_(w.permute(0, 3, 1, 2))
            elif key.startswith("linear"):
                p.copy_(torch.from_numpy(n / np.sqrt(width * 8)).reshape(p.shape))
            else:
                p.copy_(torch.from_numpy(n * 0.5 + (1 if key.endswith("weight") else 0)))
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    x = torch.from_numpy(numbers(batch * size * size * 3, 1000)).reshape(batch, size, size, 3).permute(0, 3, 1, 2)
    labels = torch.arange(batch) % outputs
    losses = []
    for _ in range(2):
        opt.zero_grad()
        loss = loss_of(net(x)[0], labels)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        logits, feature = net(x)
    tensors = [ohwi(p.detach()) for p in net.parameters()]
    tensors += [b for k, b in net.named_buffers() if not k.endswith("num_batches_tracked")]
    tensors += [logits, feature]
    flat = np.concatenate([t.contiguous().numpy().ravel() for t in tensors]).astype("<f4")
    flat.tofile(name + ".f32")
    return {"name": name, "size": size, "batch": batch, "width": width, "outputs": outputs, "losses": losses, "torch": torch.__version__}


if __name__ == "__main__":
    cases = [record("odd", 9, 5, 2, 4), record("even", 16, 6, 2, 3)]
    with open("pytorch.json", "w") as f:
        json.dump(cases, f, indent=1)
        f.write("\n")
