"""The example of a support bot, with a real model in place of its script."""

import os
import subprocess
import sys

from project_paths import ROOT


def test_a_real_model_answers_and_the_customers_words_are_kept(tmp_path, local_model):
    done = subprocess.run(
        [sys.executable, ROOT / "examples/support-bot/main.py", local_model(4096)],
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Never call me; write to ines@example.com." in done.stdout.partition("folded here")[2]
