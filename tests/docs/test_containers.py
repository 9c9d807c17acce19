"""The Compose file and the Kubernetes manifest of the documentation, as far as they run without
a container engine: their commands, health checks and settings, over a real PostgreSQL.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from string import Template
from unittest.mock import MagicMock
from urllib.request import urlopen

import psycopg
import pytest
import yaml
from free_ports import free_ports
from needed import need_postgres
from project_paths import DOCS

from refold.engine.dbos.metrics import FoldMetrics
from refold.service.metrics import ServiceMetrics
from refold.session.compaction import WAITS
from refold.settings import KEYS, SERVE_KEYS
from refold.testing.postgres import Cluster

PAGE = DOCS / "gateway" / "containers.md"
MONITORING = DOCS / "gateway" / "monitoring.md"
PASSWORDS = {"OWNER_PASSWORD": "one", "APP_PASSWORD": "two"}
TIMEOUT = 240
"""Seconds: on a busy machine, each command takes a while."""


def file_of(name):
    """The YAML block that begins with this name."""
    [text] = re.findall(
        rf"^```yaml\n# {name}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    return text


@pytest.fixture(scope="module")
def compose():
    """With its variables filled in, as Compose does."""
    text = re.sub(r":\?[^}]*\}", "}", file_of("compose.yaml"))
    return yaml.safe_load(Template(text).substitute(PASSWORDS))


@pytest.fixture(scope="module")
def manifest():
    documents = [*yaml.safe_load_all(file_of("kubernetes.yaml"))]
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def image():
    """The environment and the command of the page's Dockerfile."""
    [text] = re.findall(r"^```dockerfile\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    [variables] = re.findall(r"^ENV (.+)$", text, re.MULTILINE)
    [command] = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    pairs = dict(pair.split("=", 1) for pair in variables.split())
    return {"env": pairs, "command": yaml.safe_load(command), "text": text}


def containers(manifest):
    for kind in ("Job", "Deployment"):
        yield from manifest[kind]["spec"]["template"]["spec"]["containers"]


def test_the_services_wait_for_each_other(compose):
    services = compose["services"]
    for name, service in services.items():
        for other in service.get("depends_on", {}):
            assert other in services, name
    [config] = services["db"]["configs"]
    assert config["source"] in compose["configs"]
    assert config["target"].endswith(".sql")
    [volume] = services["db"]["volumes"]
    assert volume.partition(":")[0] in compose["volumes"]


def test_a_container_has_the_settings_that_it_names(compose, manifest, image):
    named = {*image["env"]}
    for service in compose["services"].values():
        named |= {name for name in service.get("environment", {}) if name.startswith("REFOLD_")}
    for container in containers(manifest):
        named |= {variable["name"] for variable in container["env"]}
    keys = {name.removeprefix("REFOLD_").lower().replace("__", ".") for name in named}
    assert keys - {"store", "xdg_config_home"} <= {*KEYS, *SERVE_KEYS}


def test_the_manifest_fits_together(manifest):
    pods = manifest["Deployment"]["spec"]["template"]
    selectors = (manifest["Deployment"]["spec"]["selector"]["matchLabels"],)
    for chosen in (*selectors, manifest["Service"]["spec"]["selector"]):
        assert chosen.items() <= pods["metadata"]["labels"].items()
    secret = manifest["Secret"]
    for container in containers(manifest):
        for variable in container["env"]:
            if source := variable.get("valueFrom"):
                assert source["secretKeyRef"]["name"] == secret["metadata"]["name"]
                assert source["secretKeyRef"]["key"] in secret["stringData"]
    [container] = pods["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert [port["targetPort"] for port in manifest["Service"]["spec"]["ports"]] == ["http"]
    assert ports == {"http": 8790, "metrics": 9790}
    grace = pods["spec"]["terminationGracePeriodSeconds"]
    delays = {one["name"]: one.get("value") for one in container["env"]}
    assert grace > 30 + float(delays["REFOLD_SERVE__TIMES__DRAIN_DELAY"])


@contextmanager
def served(command, env, folder):
    """While the command of the image runs; its log if it ends."""
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
        try:
            yield process, log
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT)


def healthy(command, env):
    done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=TIMEOUT)
    return done.returncode == 0


@pytest.mark.timeout(900)
def test_the_commands_of_the_services_start_a_gateway(compose, manifest, image, tmp_path):
    need_postgres()
    services = compose["services"]
    port, metrics = free_ports(2)
    with Cluster() as cluster:
        cluster.database("refold")
        owner = services["db"]["environment"]["POSTGRES_USER"]

        def env_of(service):
            address = service["environment"]["REFOLD_STORE"].replace(
                "@db/", f"@127.0.0.1:{cluster.port}/"
            )
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            ours = {**image["env"], "REFOLD_STORE": address, "PATH": path, "HOME": str(tmp_path)}
            # Here nothing but this machine may reach it, and nobody's settings apply.
            ours["XDG_CONFIG_HOME"] = str(tmp_path)
            return {**ours, "REFOLD_SERVE__HOST": "127.0.0.1", "REFOLD_SERVE__PORT": str(port)}

        def run(command, service):
            env = env_of(service)
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        with psycopg.connect(cluster.address("refold"), autocommit=True) as db:
            db.execute(f"CREATE ROLE {owner} LOGIN CREATEDB")
            db.execute(f"ALTER DATABASE refold OWNER TO {owner}")
            db.execute(f"GRANT ALL ON SCHEMA public TO {owner}")
            db.execute(compose["configs"]["roles"]["content"])
        run(services["migrate"]["command"], services["migrate"])
        gateway = services["refold"]
        assert run(["refold", "keys", "create", "--name", "my agent"], gateway).startswith("rfk_")
        [container] = manifest["Deployment"]["spec"]["template"]["spec"]["containers"]
        assert container["command"][:2] == image["command"]
        ours = f"127.0.0.1:{metrics}"
        command = [word.replace("0.0.0.0:9790", ours) for word in container["command"]]
        probes = [
            container[name]["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")
        ]
        kind, *check = gateway["healthcheck"]["test"]
        assert kind == "CMD"
        env = env_of(gateway)
        check = [word.replace("8790", str(port)) for word in check]
        assert not healthy(check, env)
        with served(command, env, tmp_path) as (process, log):
            end = time.monotonic() + TIMEOUT
            while not healthy(check, env):
                assert process.poll() is None, (log.seek(0), log.read())
                assert time.monotonic() < end
                time.sleep(0.5)
            for path in probes:
                code = check[-1].replace("/readyz", path)
                assert healthy([*check[:-1], code], env)
            with urlopen(f"http://{ours}/metrics") as answer:
                figures = answer.read().decode()
        assert "refold_serve_store_available" in figures


def test_the_page_of_metrics_names_every_one_of_the_service():
    meter = MagicMock()
    provider = MagicMock(get_meter=lambda _: meter)
    ServiceMetrics(provider=provider)
    FoldMetrics(provider=provider)
    WAITS.of(provider)
    calls = [call for call in meter.method_calls if call[0].startswith("create_")]
    names = {call.args[0].replace(".", "_") for call in calls}
    assert len(names) > 12
    page = MONITORING.read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}" not in page] == []
