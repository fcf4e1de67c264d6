#!/usr/bin/env python3
"""Time one EAOA query: Winnow beside NumPy + scikit-learn, same data, same run.

    apt-get install -y python3-sklearn        # once; Winnow itself needs neither
    python3 scripts/bench_query.py [--pool 50000] [--labeled 10000] [--runs 5]

The peer does what package ml/eaoa does (scores, reverse k-NN, mixtures, per-class
selection) with the libraries' own routines, and its k-NN three ways. Runs are
interleaved; the table shows the best and the median time of each, and the least
processor time, which a busy machine disturbs less (Winnow's includes reading the
case).
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
import warnings

import numpy as np
import sklearn
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS, BUDGET = 250, 1500  # those of the Go benchmark
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def make_case(n, m, c, d):
    """Features of overlapping classes, non-negative as after a ReLU; logits that know them."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(c + 1, d))

    def features(y):
        return np.maximum(0, centres[y] + 1.5 * rng.normal(size=(len(y), d))).astype(np.float32)

    truth = rng.integers(0, 2 * c, n).clip(max=c)
    labels = rng.integers(0, 2 * c, m).clip(max=c)
    onehot = np.eye(c + 1)[truth]
    return dict(
        detector_logits=(3 * onehot + 2 * rng.normal(size=(n, c + 1))).astype(np.float32),
        detector_features=features(truth),
        classifier_logits=(3 * onehot[:, :c] + 2 * rng.normal(size=(n, c))).astype(np.float32),
        labeled_features=features(labels),
        labels=labels.astype(np.int64),
    )


def normalised(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def neighbours_numpy(pool, labeled, k):
    """Blocked products and argpartition."""
    pool, labeled = normalised(pool), normalised(labeled)
    return np.vstack([
        np.argpartition(-(labeled[i:i + 500] @ pool.T), k - 1, axis=1)[:, :k] for i in range(0, len(labeled), 500)
    ])


def neighbours_cosine(pool, labeled, k):
    """scikit-learn, cosine metric."""
    knn = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute", n_jobs=-1).fit(pool)
    return knn.kneighbors(labeled, return_distance=False)


def neighbours_euclidean(pool, labeled, k):
    """scikit-learn, its fastest path: Euclidean on normalised vectors ranks like cosine."""
    knn = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1).fit(normalised(pool))
    return knn.kneighbors(normalised(labeled), return_distance=False)


def posterior(raw, want):
    v = ((raw - raw.min()) / (raw.max() - raw.min())).reshape(-1, 1)
    start = KMeans(2, n_init=1, random_state=0).fit(v).cluster_centers_
    mixture = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, means_init=start, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(v)
    return mixture.predict_proba(v)[:, want(mixture.means_.ravel())]


def query(case, neighbours, budget, k_neighbours, k):
    c = case["classifier_logits"].shape[1]
    f = case["detector_logits"].astype(np.float64)
    eu_l = np.logaddexp(0, f[:, c]) - logsumexp(f[:, :c], axis=1)

    nearest = neighbours(case["detector_features"], case["labeled_features"], k_neighbours)
    counts = np.zeros((c + 1, len(f)))
    for y in range(c + 1):
        counts[y] = np.bincount(nearest[case["labels"] == y].ravel(), minlength=len(f))
    sizes = np.bincount(case["labels"], minlength=c + 1)
    l = counts * (sizes[:c].mean() / sizes)[:, None]
    eu_d = np.logaddexp(0, l[c]) - logsumexp(l[:c], axis=0)

    g = np.sort(case["classifier_logits"].astype(np.float64), axis=1)
    au = logsumexp(g[:, :-1], axis=1) - logsumexp(g, axis=1)
    predicted = case["classifier_logits"].argmax(axis=1)

    clean = posterior(eu_l, np.argmin) * posterior(eu_d, np.argmin)
    info = posterior(au, np.argmax)
    share, selected = -(-budget // c), []
    for y in range(c):
        candidates = np.flatnonzero(predicted == y)
        candidates = candidates[np.argsort(-clean[candidates], kind="stable")][: share * k]
        selected.append(candidates[np.argsort(-info[candidates], kind="stable")][:share])
    return np.concatenate(selected)[:budget]


def timed(do):
    start, cpu = time.perf_counter(), time.process_time()
    result = do()
    return (time.perf_counter() - start, time.process_time() - cpu), result


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--pool", type=int, default=50_000)
    p.add_argument("--labeled", type=int, default=10_000)
    p.add_argument("--features", type=int, default=128)
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--runs", type=int, default=5)
    a = p.parse_args()

    case = make_case(a.pool, a.labeled, a.classes, a.features)
    env = dict(os.environ, GOEXPERIMENT="simd")
    with tempfile.TemporaryDirectory() as tmp:
        for name, array in case.items():
            np.save(os.path.join(tmp, name + ".npy"), array)
        with open(os.path.join(tmp, "case.json"), "w") as f:
            json.dump(dict(classes=a.classes, budget=BUDGET, k=5, neighbours=NEIGHBOURS, round=1), f)
        test, winnow = os.path.join(tmp, "eaoa.test"), os.path.join(tmp, "winnow")
        subprocess.run(["go", "test", "-c", "-o", test, "./ml/eaoa"], cwd=ROOT, env=env, check=True)
        subprocess.run(["go", "build", "-o", winnow, "./cmd/winnow"], cwd=ROOT, env=env, check=True)

        def ours():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.run([test, "-test.run=^$", "-test.bench=^BenchmarkQuery$", "-test.benchtime=1x"],
                                 env=dict(env, WINNOW_BENCH_CASE=tmp), check=True, capture_output=True, text=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return float(re.search(r"([\d.]+) ns/op", out).group(1)) / 1e9, cpu

        peers = {f"NumPy {np.__version__}, blocks and argpartition": neighbours_numpy,
                 f"scikit-learn {sklearn.__version__}, cosine": neighbours_cosine,
                 f"scikit-learn {sklearn.__version__}, Euclidean": neighbours_euclidean}
        times = {"Winnow": []} | {name: [] for name in peers}
        for _ in range(a.runs):
            times["Winnow"].append(ours())
            for name, neighbours in peers.items():
                seconds, theirs = timed(lambda: query(case, neighbours, BUDGET, NEIGHBOURS, 5))
                times[name].append(seconds)
        mine = json.loads(subprocess.run([winnow, "select", "--case", tmp], check=True, capture_output=True, text=True).stdout)["selected"]

    print(f"One query: pool {a.pool} x {a.features}, {a.labeled} labeled, K = {NEIGHBOURS}, "
          f"b = {BUDGET}, {a.classes} classes; {os.cpu_count()} cores; {a.runs} runs\n")
    print("| | best | median | processor time |\n|---|---|---|---|")
    for name, runs in times.items():
        wall, cpu = zip(*runs)
        print(f"| {name} | {min(wall):.2f} s | {statistics.median(wall):.2f} s | {min(cpu):.2f} s |")
    same = len(set(mine) & set(theirs.tolist()))
    print(f"\n{same} of {len(mine)} selected images agree.")


if __name__ == "__main__":
    main()
